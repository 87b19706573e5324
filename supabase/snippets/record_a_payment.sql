-- Records money that came in, in minor units. The order completes with the last of it, and its tickets are e-mailed.
insert into payments (order_id, amount, external_reference) values (the_order('XXXXXXXX'), 4900, 'statement 12')
returning order_id, amount, currency, received_at;

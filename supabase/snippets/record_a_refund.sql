-- Records money that was returned, in minor units. payment_status is refund_due until nothing is left.
insert into refunds (order_id, amount, external_reference) values (the_order('XXXXXXXX'), 4900, 'credit note 7')
returning order_id, amount, currency, refunded_at;

-- Takes back a payment that was recorded by mistake, in minor units; what it paid is due again, and tickets stay good.
insert into payment_voids (payment_id, reason) values (the_payment('XXXXXXXX', 4900), 'Typed twice')
returning payment_id, reason, created_at;

-- Records money that was returned. payment_status is refund_due until nothing is left.
insert into refunds (order_id, amount, external_reference)
select o.id, 4900, 'credit note 7' from orders o where o.reference = 'XXXXXXXX';

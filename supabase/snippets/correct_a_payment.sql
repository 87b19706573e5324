-- Takes back a payment that was recorded by mistake; what it paid is due again, and tickets stay good.
insert into payment_voids (payment_id, reason)
select p.id, 'Typed twice'
from payments p
join orders o on o.id = p.order_id
where o.reference = 'XXXXXXXX' and p.amount = 4900
order by p.id desc
limit 1;

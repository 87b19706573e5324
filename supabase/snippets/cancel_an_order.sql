-- Cancels an order with its tickets, for good. What was paid becomes refund_due, less a fee: amount_retained = 2000 keeps 20.00.
update orders set status = 'cancelled' where id = the_order('XXXXXXXX')
returning reference, name, status, payment_status, amount_paid;

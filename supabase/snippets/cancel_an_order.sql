-- Cancels an order with its tickets, for good. What was paid becomes refund_due.
update orders set status = 'cancelled' where reference = 'XXXXXXXX';

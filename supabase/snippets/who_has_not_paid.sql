-- The oldest first.
select reference, name, email, due, age, payment_due_at from unpaid_orders;

-- The oldest first.
select reference, name, email, due, age from unpaid_orders;

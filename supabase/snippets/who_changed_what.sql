-- The latest hundred changes, and by whom: a key by its name, a member by name or address.
select created_at, coalesce(actor_name, actor::text) as by_whom, action, object_type, object_id, changes
from audit_trail
limit 100;

-- The latest hundred changes.
select created_at, actor, action, object_type, object_id, changes
from audit_entries
order by id desc
limit 100;

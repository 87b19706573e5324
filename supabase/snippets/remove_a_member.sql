-- Stops the keys that a member made, then takes their role away. With several organisations add: and organisation_id = '…' in both.
-- Revoke their key for signing in as well. Their account stays, under Authentication.
update api_keys set revoked_at = now()
where revoked_at is null and id in (
  select object_id from audit_entries
  where object_type = 'api_key' and action = 'created' and user_id = the_member('who@example.com')
)
returning name, prefix, last_used_at;

delete from organisation_members where user_id = the_member('who@example.com')
returning role;

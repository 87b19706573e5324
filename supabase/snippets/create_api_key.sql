-- A key for another system. It is shown here and never again: copy it.
select create_api_key(
  'CRM',                                       -- what it is for
  '{events:read,attendees:read,attendees:write}' -- what it may do
  -- , confirmations => 'none'                    -- for a program: nobody confirms what it does over MCP
  -- , organisation_id => '…'                    -- if there is more than one organisation
);

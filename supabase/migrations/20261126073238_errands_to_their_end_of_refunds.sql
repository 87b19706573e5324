-- errands to their end, of refunds. Written by `npm run db:migration` from supabase/schemas, and parted from the migration
-- before.

set local lock_timeout = '2s';
set local statement_timeout = '60s';

-- One table, and no other meanwhile: claims of e-mails read attendees and orders after e-mails, and registrations write these before.
-- squawk-ignore require-concurrent-index-creation
create index refunds_organisation_id_external_reference_idx on public.refunds
  using btree (organisation_id, external_reference)
  where (external_reference is not null);

-- Searching people by any part of a name, an e-mail address, a company or an identifier, whatever its case and accents. Each attendee
-- has one text to be searched (attendees.search_text), with an index of its trigrams. Two things shape that index:
-- * Under row level security the planner uses no trigram index, for its operators are not leakproof. So a security definer function
--   finds ids, as for every list (00-ground/pages.sql), and compares the organisation itself.
-- * It has the hash of the organisation beside the trigrams, so that a search costs the same whatever other organisations have. No other
--   index has that hash, so the planner has no other way.

-- Both are trusted, so the role postgres of a hosted project may create them.
create extension if not exists pg_trgm with schema extensions;
create extension if not exists btree_gin with schema extensions;

-- The form in which texts are compared: lower case, in the compatibility decomposition of Unicode, without combining accents. Some Latin
-- letters have no decomposition; they become what is typed in their place.
create function private.search_form(text text) returns text
language plpgsql immutable strict set search_path = ''
as $$
begin
  if octet_length(text) > length(text) then
    text := translate(regexp_replace(normalize(text, nfkd), '[\u0300-\u036f]', '', 'g'), 'øØłŁđĐðÐħĦıŧŦ', 'ooLLddddhhitt');
    text := replace(replace(replace(text, 'ß', 'ss'), 'æ', 'ae'), 'œ', 'oe');
    text := replace(replace(replace(replace(text, 'Æ', 'ae'), 'Œ', 'oe'), 'þ', 'th'), 'Þ', 'th');
  end if;
  return lower(text);
end
$$;
-- Members add and edit rows of tables with indexes by it.
grant execute on function private.search_form to api_key, authenticated;

-- The words of a search as patterns for `like all`, the longest first: these read least of the index. Refuses what would match nearly
-- everything.
create function private.search_patterns(search text) returns text[]
language plpgsql stable set search_path = ''
as $$
declare
  v_patterns text[] := array(
    select '%' || regexp_replace(w.word, '([\\%_])', '\\\1', 'g') || '%'
    from (select distinct w.word from regexp_split_to_table(private.search_form(search), '\s+') w (word)) w
    where w.word <> ''
    order by length(w.word) desc, w.word
  );
begin
  if length(btrim(search)) > 100 or coalesce(length(v_patterns[1]), 0) < 5 then
    perform private.refuse_value(
      'search', 'A search has 3 to 100 characters, with a word of at least 3.', 'Write more of the name or the e-mail address.'
    );
  end if;
  return v_patterns;
end
$$;
grant execute on function private.search_patterns to api_key;

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

-- The words of a search, the longest first. Beside others, those that are punctuation alone do not count: banks write + for &, and some
-- people a dash.
create function private.search_words(form text) returns text[]
language plpgsql immutable set search_path = ''
as $$
declare
  v_punctuation constant text := '[!-/:-@[-`{-~\u00a1-\u00bf\u2010-\u205e]';
begin
  return array(
    select w.word
    from (select distinct w.word from regexp_split_to_table(form, '\s+') w (word)) w
    where w.word <> ''
      and (w.word !~ ('^' || v_punctuation || '+$') or form ~ ('^(\s|' || v_punctuation || ')+$'))
    order by length(w.word) desc, w.word
  );
end
$$;
grant execute on function private.search_words to api_key;

-- The words of a search as regular expressions for `~ all`, the longest first: these read least of the index. Banks write umlauts out, and so
-- do people who have one in their name: ae, oe and ue match what they are and the bare vowel, which is the form of an umlaut; an umlaut
-- matches both as well. Refuses what would match nearly everything.
create function private.search_patterns(search text) returns text[]
language plpgsql stable set search_path = ''
as $$
declare
  v_special constant text := '([][\\.*+?(){}|^$])';
  v_words text[] := private.search_words(private.search_form(search));
  v_spelt text[] := v_words;
begin
  if length(btrim(search)) > 100 or coalesce(length(v_words[1]), 0) < 3 then
    perform private.refuse_value(
      'search', 'A search has 3 to 100 characters, with a word of at least 3.', 'Write more of the name or the e-mail address.'
    );
  end if;
  if octet_length(search) > length(search) then
    v_spelt := private.search_words(private.search_form(regexp_replace(normalize(search, nfc), '([äöüøÄÖÜØ])', '\1e', 'g')));
  end if;
  -- Without three characters that are sure there is no trigram to look up.
  if exists (select from unnest(v_spelt) w (word) where length(regexp_replace(w.word, '([aou])e', '\1', 'g')) >= 3) then
    return array(
      select regexp_replace(regexp_replace(w.word, v_special, '\\\1', 'g'), '([aou])e', '\1e?', 'g')
      from unnest(v_spelt) w (word)
      order by length(regexp_replace(w.word, '([aou])e', '\1', 'g')) desc, w.word
    );
  end if;
  return array(
    select regexp_replace(w.word, v_special, '\\\1', 'g') from unnest(v_words) with ordinality w (word, place) order by w.place
  );
end
$$;
grant execute on function private.search_patterns to api_key;

-- Such an expression as a pattern for `like`, which matches no less: the index narrows by all trigrams of a pattern, and by some sixteen of an
-- expression, which of an e-mail address may be those that many share.
create function private.like_pattern(expression text) returns text
language plpgsql immutable strict set search_path = ''
as $$
begin
  -- Both escape by a backslash.
  return '%' || replace(regexp_replace(expression, '([%_])', '\\\1', 'g'), 'e?', '%') || '%';
end
$$;

-- The expression, if the index knows more by it than by the pattern; else one that matches everything.
create function private.index_expression(expression text) returns text
language plpgsql immutable strict set search_path = ''
as $$
begin
  return case when expression like '%e?%' then expression else '' end;
end
$$;

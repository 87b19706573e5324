-- Searching people by any part of a name, an e-mail address, a company or an identifier, whatever its case and accents. Each attendee
-- has one text to be searched (attendees.search_text), with an index of its trigrams. Two things shape that index:
-- * Under row level security the planner uses no trigram index, for its operators are not leakproof. So a security definer function
--   finds ids, as for every list (00-ground/pages.sql), and compares the organisation itself.
-- * It has the hash of the organisation beside the trigrams, so that a search costs the same whatever other organisations have. No other
--   index has that hash, so the planner has no other way.

-- Both are trusted, so the role postgres of a hosted project may create them.
create extension if not exists pg_trgm with schema extensions;
create extension if not exists btree_gin with schema extensions;

-- The form of a person: two names that read alike are one, as is whatever else people call something. Lower case in the compatibility
-- decomposition of Unicode, which tells apart what its composition does; single blanks, one apostrophe, one dash, and nothing invisible,
-- which is what Unicode ignores by default, the blank of braille and marks of annotations. What nobody sees has an empty form.
create function private.person_form(name text) returns text
language plpgsql immutable strict set search_path = ''
as $$
begin
  name := translate(name, E'`\t\n\x0b\f\r', '''     ');
  if octet_length(name) > length(name) then
    name := regexp_replace(
      name,
      '[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0'
      '\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]',
      '', 'g'
    );
    name := normalize(
      translate(
        name,
        E'\u00b4\u02b9\u02bb\u02bc\u02bd\u02be\u02bf\u02c8\u02ca\u02cb\u2018\u2019\u201b\u2032\u2035\u055a\u05f3\ua78b\ua78c\uff07\uff40'
        '\u02d7\u058a\u05be\u2010\u2011\u2012\u2013\u2014\u2015\u2043\u2212\u2e3a\u2e3b\ufe58\ufe63\uff0d'
        '\u0085\u1680\u2028\u2029',
        repeat('''', 21) || repeat('-', 16) || repeat(' ', 4)
      ),
      nfkd
    );
  end if;
  if strpos(name, '  ') > 0 then
    name := regexp_replace(name, ' +', ' ', 'g');
  end if;
  return lower(btrim(name));
end
$$;
grant execute on function private.person_form to api_key, authenticated;

-- The form in which somebody or something is looked for: that of a person without accents. Some Latin letters have no decomposition; they
-- become what is typed in their place.
create function private.search_form(text text) returns text
language plpgsql immutable strict set search_path = ''
as $$
begin
  text := private.person_form(text);
  if octet_length(text) > length(text) then
    text := translate(regexp_replace(text, '[\u0300-\u036f]', '', 'g'), 'øłđðħıŧ', 'olddhit');
    text := replace(replace(replace(replace(text, 'ß', 'ss'), 'æ', 'ae'), 'œ', 'oe'), 'þ', 'th');
  end if;
  return text;
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

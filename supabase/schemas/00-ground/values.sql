-- Generators, formats and validity of values: ids, codes, times, e-mail and web addresses, money and metadata. Reads no table.

-- UUID version 7 (RFC 9562): 48 bits of milliseconds, 12 bits of sub-millisecond precision (its method 3), then random bits.
-- Ids sort by creation, also within one registration; keyset pages rely on it. PostgreSQL has its own from version 18 on.
create function private.uuid_v7() returns uuid
language plpgsql volatile set search_path = ''
as $$
declare
  v_microseconds bigint := date_part('epoch', clock_timestamp()) * 1000000;
begin
  return encode(
    overlay(
      uuid_send(gen_random_uuid())
      placing int8send((v_microseconds / 1000 << 16) | x'7000'::bigint | (v_microseconds % 1000 * 4096 / 1000))
      from 1 for 8
    ),
    'hex'
  )::uuid;
end
$$;
grant execute on function private.uuid_v7 to api_key, authenticated;

-- Less than any that is made from then on; of a time before 1970 less than all.
create function private.first_uuid_v7(moment timestamptz) returns uuid
language plpgsql immutable strict set search_path = ''
as $$
begin
  return (lpad(to_hex(floor(extract(epoch from greatest(moment, '1970-01-01Z')) * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid;
end
$$;
grant execute on function private.first_uuid_v7 to scope_attendees_read, scope_orders_read;

-- Crockford's base 32 leaves out I, L, O and U, so that a code can be read aloud and typed. Five bits a character, taken from the sha256 of
-- one random UUID (122 bits): safe up to 24 characters. In base 64, folded to upper case, a letter is twice as likely as any other
-- character; these become the digits in pairs, and the letters that are left out the other digits, so that all are equally likely.
create function private.random_code(length integer) returns text
language plpgsql volatile set search_path = ''
as $$
begin
  return translate(
    upper(left(encode(sha256(uuid_send(gen_random_uuid())), 'base64'), length) collate "C"), 'ILOU0123456789+/', '0123445566778899'
  );
end
$$;

-- A code as private.random_code made it, of one that was read aloud and typed: letters that it leaves out are the digits that they look
-- like, full-width forms are plain, and nothing but letters and digits counts, besides the TEST- before the sixteen of a test ticket. As
-- src/apps/door/browser/offline-rules.ts has it.
create function private.code_form(code text) returns text
language plpgsql immutable strict set search_path = ''
as $$
begin
  code := translate(upper(regexp_replace(normalize(code, nfkc), '[^0-9A-Za-z]', '', 'g')), 'OIL', '011');
  return case when code like 'TEST' || repeat('_', 16) then 'TEST-' || substr(code, 5) else code end;
end
$$;
grant execute on function private.code_form to api_key, authenticated;

-- 128 bits in hex: no character that a mail program might take for the end of a link.
create function private.random_token() returns text
language plpgsql volatile set search_path = ''
as $$ begin return encode(substr(sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())), 1, 16), 'hex'); end $$;

-- RFC 3339 in UTC with milliseconds, independent of the time zone of the session.
create function private.rfc3339(moment timestamptz) returns text
language plpgsql immutable strict set search_path = ''
as $$ begin return to_char(moment at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'); end $$;
grant execute on function private.rfc3339 to api_key, authenticated;

-- Addresses that fit an e-mail header without quotes or another alphabet. src/operations/fields.ts has the same rule.
-- That a label of a domain has at most 63 characters is asked of long ones alone: in the expression it takes 50 µs in place of 10.
create function private.is_email_address(address text) returns boolean
language plpgsql immutable set search_path = ''
as $$
begin
  return length(address) <= 254 and strpos(address, '@') <= 65
    and address ~ '^[A-Za-z0-9!#$%&''*+/=?^_`{|}~-]+([.][A-Za-z0-9!#$%&''*+/=?^_`{|}~-]+)*@([A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?[.])+[A-Za-z][A-Za-z0-9-]*[A-Za-z0-9]$'
    and (length(address) <= 66 or split_part(address, '@', 2) !~ '[^.]{64}');
end
$$;
grant execute on function private.is_email_address to api_key, authenticated;

-- What to do about a text that is no address: of what is invisible, or no ASCII, its code point.
create function private.hint_for_address(address text) returns text
language plpgsql immutable set search_path = ''
as $$
declare
  v_odd text := substring(address from '[^!-~]');
  v_code_point text := upper(to_hex(ascii(v_odd)));
begin
  return concat_ws(
    ' ',
    'Write it as in name@example.com.',
    'The character U+' || lpad(v_code_point, greatest(4, length(v_code_point)), '0') || ' is not allowed.',
    case when ascii(v_odd) > 127 then 'A domain with letters beyond ASCII is written with xn--, as in name@xn--bcher-kva.de.' end
  );
end
$$;
grant execute on function private.hint_for_address to scope_attendees_write;

-- A domain that cannot exist (RFC 2606), for who has no address: children, and walk-ins at the door.
create function private.takes_no_mail(address text) returns boolean
language plpgsql immutable set search_path = ''
as $$ begin return lower(address) like '%.invalid'; end $$;

-- A name: one line, of which something is seen.
create function private.is_one_line(text text, characters integer) returns boolean
language plpgsql immutable strict set search_path = ''
as $$ begin return length(btrim(text)) <= characters and text !~ '[[:cntrl:]]' and private.person_form(text) <> ''; end $$;
grant execute on function private.is_one_line to api_key, authenticated;

-- Where the courier may be sent: https without credentials, for the address is shown. http only for localhost, where the courier allows that.
create function private.is_courier_url(url text) returns boolean
language plpgsql immutable set search_path = ''
as $$
begin
  return length(url) <= 2000
    and url ~ '^(https://([^][/?#@:[:space:][:cntrl:]]+|\[[0-9A-Fa-f:.]+\])|http://(localhost|127\.0\.0\.1|\[::1\]))(:[0-9]{1,5})?([/?#][^[:space:][:cntrl:]]*)?$';
end
$$;
grant execute on function private.is_courier_url to api_key, authenticated;

-- The currencies that are paid with: ISO 4217 List One as of February 2026 (six-group.com, taken from the repository
-- datasets/currency-codes), without its codes for funds, metals, units of account and tests.
create function private.is_currency(code text) returns boolean
language plpgsql immutable set search_path = ''
as $$
begin
  return code = any ('{
    AED,AFN,ALL,AMD,AOA,ARS,AUD,AWG,AZN,BAM,BBD,BDT,BHD,BIF,BMD,BND,BOB,BRL,BSD,BTN,BWP,BYN,BZD,CAD,CDF,CHF,CLP,CNY,COP,CRC,
    CUP,CVE,CZK,DJF,DKK,DOP,DZD,EGP,ERN,ETB,EUR,FJD,FKP,GBP,GEL,GHS,GIP,GMD,GNF,GTQ,GYD,HKD,HNL,HTG,HUF,IDR,ILS,INR,IQD,IRR,
    ISK,JMD,JOD,JPY,KES,KGS,KHR,KMF,KPW,KRW,KWD,KYD,KZT,LAK,LBP,LKR,LRD,LSL,LYD,MAD,MDL,MGA,MKD,MMK,MNT,MOP,MRU,MUR,MVR,MWK,
    MXN,MYR,MZN,NAD,NGN,NIO,NOK,NPR,NZD,OMR,PAB,PEN,PGK,PHP,PKR,PLN,PYG,QAR,RON,RSD,RUB,RWF,SAR,SBD,SCR,SDG,SEK,SGD,SHP,SLE,
    SOS,SRD,SSP,STN,SVC,SYP,SZL,THB,TJS,TMT,TND,TOP,TRY,TTD,TWD,TZS,UAH,UGX,USD,UYU,UZS,VED,VES,VND,VUV,WST,XAF,XCD,XCG,XOF,
    XPF,YER,ZAR,ZMW,ZWG
  }'::text[]);
end
$$;

-- An address that people open: without credentials, which everybody would see, and without characters that are invisible or turn
-- the direction of the text, which make it look like another one.
create function private.is_web_url(url text) returns boolean
language plpgsql immutable set search_path = ''
as $$
begin
  return length(url) <= 2000
    and url ~ '^https?://[^/?#@\\[:space:]]+([/?#][^[:space:]]*)?$'
    and url !~ '[\u0001-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]';
end
$$;
grant execute on function private.is_web_url to api_key, authenticated;

-- Metadata is a flat object of at most 50 keys: every system can store it, and it does not become a database of its own. It
-- contains nothing that a JSON client would change or lose: no number that is not a double, and no key __proto__, which
-- JavaScript treats as the prototype.
create function private.is_metadata(value jsonb) returns boolean
language plpgsql immutable set search_path = '' set extra_float_digits = 1
as $$
begin
  return case
    when jsonb_typeof(value) <> 'object' then false
    else (
      select count(*) <= 50
        and coalesce(bool_and(
          length(e.key) between 1 and 40
          and e.key <> '__proto__'
          and coalesce(length(e.value #>> '{}'), 0) <= 500
          and case jsonb_typeof(e.value)
            -- Read and written as a double it stays the same. Beyond 2^53 - 1 integers do not; below the least double the cast fails.
            when 'number' then e.value = '0' or abs((e.value #>> '{}')::numeric) between 4e-324 and 9007199254740991
              and (e.value #>> '{}')::float8::text::numeric = (e.value #>> '{}')::numeric
            else jsonb_typeof(e.value) in ('string', 'boolean', 'null')
          end
        ), true)
      from jsonb_each(value) e
    )
  end;
end
$$;
grant execute on function private.is_metadata to api_key, authenticated;

-- Changes with what metadata they come to: theirs merged into those that are there, in which null removes a key. So systems that each know
-- a few keys of one object do not take them from one another.
create function private.with_merged_metadata(changes jsonb, metadata jsonb) returns jsonb
language plpgsql immutable set search_path = ''
as $$
begin
  if jsonb_typeof(changes -> 'metadata') is distinct from 'object' then
    return changes;
  end if;
  return changes || jsonb_build_object('metadata',
    coalesce(nullif(metadata, 'null') - array(select jsonb_object_keys(changes -> 'metadata')), '{}') || jsonb_strip_nulls(changes -> 'metadata')
  );
end
$$;
grant execute on function private.with_merged_metadata to api_key;

-- How many minor units one of the currency has (ISO 4217).
create function private.minor_units(currency text) returns integer
language plpgsql immutable set search_path = ''
as $$
begin
  return case
    when currency in (
      'BIF', 'CLP', 'DJF', 'GNF', 'ISK', 'JPY', 'KMF', 'KRW', 'PYG', 'RWF', 'UGX', 'UYI', 'VND', 'VUV', 'XAF', 'XOF', 'XPF'
    ) then 1
    when currency in ('BHD', 'IQD', 'JOD', 'KWD', 'LYD', 'OMR', 'TND') then 1000
    else 100
  end;
end
$$;
grant execute on function private.minor_units to scope_events_write, scope_attendees_read, scope_orders_read, authenticated;

-- "49.00".
create function private.money_decimal(amount bigint, currency text) returns text
language plpgsql immutable set search_path = ''
as $$
declare
  v_units integer := private.minor_units(currency);
begin
  return round(amount / v_units::numeric, length(v_units::text) - 1);
end
$$;
grant execute on function private.money_decimal to scope_events_write, scope_attendees_read, scope_orders_read, authenticated;

-- "EUR 49.00".
create function private.money_text(amount bigint, currency text) returns text
language plpgsql immutable set search_path = ''
as $$ begin return currency || ' ' || private.money_decimal(amount, currency); end $$;
grant execute on function private.money_text to scope_events_write, authenticated;

-- A time as people type it, on the clock of an event: 2027-05-03 10:00 Europe/Berlin.
create function private.clock_time(moment timestamptz, timezone text) returns text
language plpgsql stable set search_path = ''
as $$ begin return to_char(moment at time zone timezone, 'YYYY-MM-DD HH24:MI') || ' ' || timezone; end $$;
grant execute on function private.clock_time to scope_events_write;

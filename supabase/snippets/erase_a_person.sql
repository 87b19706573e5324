-- Who has the address, in all events. Several people may: a buyer gives theirs for a group. With several organisations, say of which in both
-- statements: organisation_id => '…'.
select find_person('who@example.com');

-- Erases everything about them, here and in every log; names => '{"Jane Doe"}' where others have the address, too. Figures, money and tickets
-- stay. The receipt says what else stays, and why.
select erase_person('who@example.com');

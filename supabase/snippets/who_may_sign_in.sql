-- Who may sign in, and what they may do. Whose account has no name gets one in the column name of organisation_members.
select name, email, role, created_at from members;

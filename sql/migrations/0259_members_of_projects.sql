-- Projects to which a member is limited, and to which somebody who is invited will be: null is all of the account, an
-- empty list none (docs/decisions/0131). Owners and members for billing are never limited, whatever is here.
alter table auth.member add column projects text[];
alter table auth.invitation add column projects text[];

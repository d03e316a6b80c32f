-- People sign in by issuers such as Google, too: a row of auth.account with the issuer's address and its own id of the
-- person. No token of the issuer is stored.
alter table auth.account add column email text; -- of the person there, when it was connected
alter table auth.account add column "usedAt" timestamptz; -- the last sign-in by it
create unique index account_of_issuer on auth.account ("providerId", "accountId") where "providerId" <> 'credential';

-- The session began with two factors, whatever the person has set up: by an issuer that the operator trusts with it.
alter table auth.session add column "hasTwoFactors" boolean;

-- Who is told of a low balance: noted once the mail server has taken the mail, and claimed meanwhile, so that neither a
-- crash loses it nor two nodes send it.

-- room: billing
alter table balance_alerts
  add column telling_at timestamptz, -- since when somebody tells; a claim that nobody ends counts for some minutes
  add column seen_entry bigint;      -- of a balance that was told of: how far its ledger has been looked through since

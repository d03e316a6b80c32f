-- Activity opens on generations and calls together: lists that were saved for generations say so from now on.
update saved_views set search = concat_ws('&', 'tab=tasks', nullif(search, ''))
 where search !~ '(^|&)tab=' and length(search) <= 1900;

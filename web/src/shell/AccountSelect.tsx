import { Select } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { usePlace } from '../session.tsx';

/** Changes the account, for those who belong to several. */
export function AccountSelect() {
  const { me, account, choose } = usePlace();
  const queries = useQueryClient();
  return (
    <Select
      aria-label="Account"
      size="xs"
      w={170}
      value={account.id}
      allowDeselect={false}
      data={me.accounts.map(({ id, name }) => ({ value: id, label: name }))}
      onChange={(id) => {
        if (!id) return;
        choose(id);
        void queries.invalidateQueries();
      }}
    />
  );
}

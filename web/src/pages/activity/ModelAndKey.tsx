import { ChoiceFilter } from '../../ui/Filters.tsx';
import { useKeyChoices } from '../../ui/key-choices.ts';
import { useChoices } from './filters.ts';

type Chosen = { model?: string | undefined; key?: string | undefined };

/** The two filters that every list of what was used has. */
export function ModelAndKey({ search, set }: { search: Chosen; set: (change: Chosen) => void }) {
  const { models } = useChoices();
  const keys = useKeyChoices(search.key === undefined ? [] : [search.key]);
  return (
    <>
      <ChoiceFilter label="Model" value={search.model} data={models} onChange={(model) => set({ model })} width={220} />
      <ChoiceFilter
        label="Key"
        value={search.key}
        data={keys.data}
        search={keys}
        onChange={(key) => set({ key })}
        width={220}
      />
    </>
  );
}

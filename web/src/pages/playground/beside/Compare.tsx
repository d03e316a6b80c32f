import { MultiSelect } from '@mantine/core';
import type { ModelView } from '../../../../../src/dashboard/views/models.ts';

type Props = {
  model: ModelView;
  /** Models that can be asked the same; this one may be among them. */
  others: readonly ModelView[];
  beside: readonly ModelView[];
  setBeside: (ids: string[]) => void;
  /** Models at once, this one included. */
  models_max: number;
  description: string;
  nothing: string;
};

/** Chooses the models that run beside this one. */
export function Compare({ model, others, beside, setBeside, models_max, description, nothing }: Props) {
  return (
    <MultiSelect
      label="Compare"
      description={description}
      searchable
      maxValues={models_max - 1}
      value={beside.map(({ id }) => id)}
      onChange={setBeside}
      data={others
        .filter(({ id }) => id !== model.id)
        .map(({ id, display_name }) => ({ value: id, label: display_name }))}
      placeholder={beside.length === 0 ? 'Compare with…' : ''}
      nothingFoundMessage={nothing}
    />
  );
}

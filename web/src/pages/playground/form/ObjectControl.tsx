import { Fieldset, Text } from '@mantine/core';
import { isRecord } from '../../../api.ts';

import { labelsOf, type ControlProps } from './control-labels.ts';

/** An object in the input: a form in the form. */
export function ObjectControl(props: ControlProps) {
  const { field, value, update, problems, path, disabled, renderForm } = props;
  const { label, description } = labelsOf(props);
  return (
    <Fieldset legend={label} styles={{ legend: { fontWeight: 600, fontSize: 'var(--mantine-font-size-sm)' } }}>
      {description !== undefined && (
        <Text size="sm" c="dimmed" mb="sm">
          {description}
        </Text>
      )}
      {renderForm({
        schema: field.schema,
        value: isRecord(value) ? value : {},
        update: (change) =>
          update((before) => {
            const next = change(isRecord(before) ? before : {});
            return Object.keys(next).length === 0 ? undefined : next;
          }),
        problems,
        path,
        disabled,
      })}
    </Fieldset>
  );
}

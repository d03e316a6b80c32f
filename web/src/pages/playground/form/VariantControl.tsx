import { Select, Stack } from '@mantine/core';
import { useState } from 'react';
import { isRecord } from '../../../api.ts';
import { textOf, titleOf, typeOf, type FieldSchema } from '../../../ui/schema.ts';
import { labelsOf, type ControlProps } from './control-labels.ts';

/** The forms that a field may have, without that of being null. */
export function variantsOf(schema: FieldSchema): FieldSchema[] {
  const { oneOf, anyOf } = schema;
  const all = (Array.isArray(oneOf) ? oneOf : Array.isArray(anyOf) ? anyOf : []).filter(isRecord);
  return all.every((one) => typeOf(one) !== undefined) ? all.filter((one) => typeOf(one) !== 'null') : [];
}

/** First which form the field has, then a control for that. */
export function VariantControl(props: ControlProps) {
  const { field, value, onChange, disabled, renderControl } = props;
  const variants = variantsOf(field.schema);
  const [chosen, setChosen] = useState(() =>
    Math.max(
      0,
      variants.findIndex((one) => suits(one, value)),
    ),
  );
  const variant = variants[chosen] ?? {};
  const { description } = labelsOf(props);
  return (
    <Stack gap="xs">
      {variants.length > 1 && (
        <Select
          label={`${titleOf(field)}: variant`}
          description={description}
          allowDeselect={false}
          data={variants.map((one, index) => ({ value: String(index), label: nameOf(one, index) }))}
          value={String(chosen)}
          onChange={(next) => {
            setChosen(Number(next ?? 0));
            onChange(undefined);
          }}
          disabled={disabled}
        />
      )}
      {renderControl({
        ...props,
        field: { ...field, schema: { ...variant, title: titleOf(field), default: field.schema['default'] } },
      })}
    </Stack>
  );
}

function nameOf(variant: FieldSchema, index: number): string {
  return textOf(variant, 'title') ?? textOf(variant, 'description') ?? typeOf(variant) ?? `Variant ${index + 1}`;
}

function suits(variant: FieldSchema, value: unknown): boolean {
  const type = typeOf(variant);
  if (Array.isArray(value)) return type === 'array';
  if (isRecord(value)) return type === 'object';
  return typeof value === type || (typeof value === 'number' && type === 'integer');
}

import { Group, Input, NumberInput, Slider } from '@mantine/core';
import { useId } from 'react';
import { numberOf, typeOf } from '../../../ui/schema.ts';
import { labelsOf, type ControlProps } from './control-labels.ts';

/** More steps than these cannot be told apart on a slider. */
const steps_max = 4_096;

/** A box, and where there is a range of a size that one can point into, a slider beside it. */
export function NumberControl(props: ControlProps) {
  const { field, value, onChange } = props;
  const { schema } = field;
  const id = useId();
  const [min, max] = [numberOf(schema, 'minimum'), numberOf(schema, 'maximum')];
  const whole = typeOf(schema) === 'integer';
  const step = numberOf(schema, 'multipleOf') ?? (whole ? 1 : fineStep(min, max));
  const usual = numberOf(schema, 'default');
  const shown = typeof value === 'number' ? value : usual;
  const { label, description, withAsterisk, error, disabled } = labelsOf(props);
  const box = {
    value: shown ?? '',
    onChange: (next: string | number) => onChange(typeof next === 'number' ? next : undefined),
    ...(min !== undefined && { min }),
    ...(max !== undefined && { max }),
    step,
    allowDecimal: !whole,
    clampBehavior: 'none' as const, // what is too much is said, not changed behind one's back
    disabled,
  };
  if (min === undefined || max === undefined || (max - min) / step > steps_max) {
    return (
      <NumberInput {...{ label, description, withAsterisk, error }} {...box} styles={{ wrapper: { maxWidth: 220 } }} />
    );
  }
  return (
    <Input.Wrapper {...{ label, description, withAsterisk, error }} labelProps={{ htmlFor: id }}>
      <Group gap="md" wrap="nowrap" mt={4}>
        <Slider
          flex={1}
          min={min}
          max={max}
          step={step}
          value={Math.min(Math.max(shown ?? min, min), max)}
          onChange={onChange}
          disabled={disabled}
          label={null}
          thumbLabel={label}
        />
        <NumberInput id={id} {...box} w={104} />
      </Group>
    </Input.Wrapper>
  );
}

function fineStep(min: number | undefined, max: number | undefined): number {
  if (min === undefined || max === undefined) return 1;
  return max - min <= 2 ? 0.05 : max - min <= 20 ? 0.5 : 1;
}

import { Input, Select, SegmentedControl, Switch, Textarea, TextInput } from '@mantine/core';
import { isRecord } from '../../../api.ts';
import { useId } from 'react';
import { fieldsOf, mediaOf, numberOf, typeOf } from '../../../ui/schema.ts';
import { JsonControl } from './JsonControl.tsx';
import { ListControl } from './ListControl.tsx';
import { MediaControl } from './MediaControl.tsx';
import { NumberControl } from './NumberControl.tsx';
import { ObjectControl } from './ObjectControl.tsx';
import { VariantControl, variantsOf } from './VariantControl.tsx';
import { itemsOf, labelsOf, type ControlProps } from './control-labels.ts';

/** The control that suits a field; JSON where none does, so that no field is out of reach. */
export function Control(props: ControlProps) {
  const { field, value } = props;
  const { schema } = field;
  if (mediaOf(field) && isText(value)) return <MediaControl {...props} />;
  if (isChoice(schema['enum']) && isOneOf(schema['enum'], value)) return <ChoiceControl {...props} />;
  const type = typeOf(schema);
  if (type === 'boolean' && (value === undefined || typeof value === 'boolean')) return <SwitchControl {...props} />;
  if ((type === 'integer' || type === 'number') && (value === undefined || typeof value === 'number')) {
    return <NumberControl {...props} />;
  }
  if (type === 'string' && isText(value)) return <TextControl {...props} />;
  if (type === 'array' && typeOf(itemsOf(field)) === 'string' && (value === undefined || isTexts(value))) {
    return <ListControl {...props} />;
  }
  if (type === 'object' && fieldsOf(schema).length > 0 && (value === undefined || isRecord(value))) {
    return <ObjectControl {...props} />;
  }
  if (type === undefined && variantsOf(schema).length > 0) return <VariantControl {...props} />;
  return <JsonControl {...props} />;
}

function isText(value: unknown): boolean {
  return value === undefined || typeof value === 'string';
}

function isTexts(value: unknown): boolean {
  return Array.isArray(value) && value.every((one) => typeof one === 'string');
}

type Choice = string | number;

function isChoice(choices: unknown): choices is Choice[] {
  return Array.isArray(choices) && choices.every((one) => typeof one === 'string' || typeof one === 'number');
}

function isOneOf(choices: Choice[], value: unknown): boolean {
  return value === undefined || choices.some((one) => one === value);
}

function ChoiceControl(props: ControlProps) {
  const { field, value, onChange } = props;
  const { schema, required } = field;
  const id = useId();
  const choices = isChoice(schema['enum']) ? schema['enum'] : [];
  const texts = choices.map(String);
  const shown = value ?? schema['default'];
  const choose = (text: string | null) => onChange(choices.find((one) => String(one) === text));
  const labels = labelsOf(props);
  const is_short = texts.length <= 4 && texts.join('').length <= 36;
  if (is_short && shown !== undefined) {
    const { label, description, withAsterisk, error, disabled } = labels;
    return (
      <Input.Wrapper {...{ label, description, withAsterisk, error }} labelElement="div" labelProps={{ id }}>
        <div>
          <SegmentedControl
            aria-labelledby={id}
            data={texts}
            value={String(shown)}
            onChange={choose}
            disabled={disabled}
            mt={4}
          />
        </div>
      </Input.Wrapper>
    );
  }
  return (
    <Select
      {...labels}
      data={texts}
      value={shown === undefined ? null : String(shown)}
      onChange={choose}
      searchable={texts.length > 10}
      clearable={!required && value !== undefined}
      clearButtonProps={{ 'aria-label': `Clear ${labels.label}` }}
    />
  );
}

function SwitchControl(props: ControlProps) {
  const { field, value, onChange } = props;
  const { withAsterisk: _, ...labels } = labelsOf(props);
  const shown = value ?? field.schema['default'];
  return (
    <Switch {...labels} checked={shown === true} onChange={({ currentTarget }) => onChange(currentTarget.checked)} />
  );
}

const long_names = new Set(['prompt', 'text', 'negative_prompt', 'input', 'lyrics', 'script']);

function TextControl(props: ControlProps) {
  const { field, value, onChange } = props;
  const { name, schema, required } = field;
  const most = numberOf(schema, 'maxLength');
  const usual = schema['default'];
  const examples = schema['examples'];
  const example: unknown = Array.isArray(examples) ? examples[0] : undefined;
  const text = typeof value === 'string' ? value : '';
  const shown = {
    ...labelsOf(props),
    value: text,
    placeholder: typeof usual === 'string' ? usual : typeof example === 'string' ? example : '',
    onChange: ({ currentTarget }: { currentTarget: { value: string } }) =>
      onChange(currentTarget.value === '' ? undefined : currentTarget.value),
  };
  const is_long = long_names.has(name) || schema['x-ui'] === 'textarea' || (most !== undefined && most > 120);
  if (!is_long) return <TextInput {...shown} />;
  return (
    <Textarea
      {...shown}
      autosize
      minRows={required ? 4 : 2}
      maxRows={14}
      {...(most !== undefined &&
        text.length > most * 0.8 && {
          description: `${shown.description ?? ''} ${text.length} of ${most} characters.`,
        })}
    />
  );
}

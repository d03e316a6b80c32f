import type { ReactNode } from 'react';
import { isRecord } from '../../../api.ts';
import type { FieldProblem } from '../../../../../src/dashboard/views/playground.ts';
import { textOf, titleOf, type Field, type FieldSchema } from '../../../ui/schema.ts';
import { problemAt } from './problems.ts';

type Input = Record<string, unknown>;

export type FormProps = {
  schema: FieldSchema;
  value: Input;
  /** Makes a change in what the input is by then: uploads end long after the form was drawn. */
  update: (change: (before: Input) => Input) => void;
  problems: readonly FieldProblem[];
  /** Path of `value`: `input`. */
  path: string;
  disabled: boolean;
};

export type ControlProps = {
  field: Field;
  value: unknown;
  /** Undefined takes the field out of the input: its default holds. */
  onChange: (value: unknown) => void;
  /** The same, of a value that is a part of the one before. */
  update: (change: (before: unknown) => unknown) => void;
  problems: readonly FieldProblem[];
  path: string;
  disabled: boolean;
  /** Draws an object in the input: a form in the form. */
  renderForm: (form: FormProps) => ReactNode;
  renderControl: (control: ControlProps) => ReactNode;
};

/** Returns the label, the help and the problem of a control's field. */
export function labelsOf({ field, value, problems, path, disabled }: ControlProps) {
  const problem = problemAt(problems, path);
  // What is merely not there yet is said beside the button.
  const error = problem !== undefined && value !== undefined ? problem : undefined;
  return {
    label: titleOf(field),
    description: textOf(field.schema, 'description'),
    withAsterisk: field.required,
    disabled,
    ...(error !== undefined && { error }),
  };
}

export function itemsOf({ schema }: Pick<Field, 'schema'>): Record<string, unknown> {
  return isRecord(schema['items']) ? schema['items'] : {};
}

import { invalidField } from '../errors.ts';

/** Fields of a body, which may be anything. Each reader throws ApiError 400 that names the field. */
export type BodyFields = {
  /** 1 to `length_max` characters, without spaces around them. */
  text(name: string, length_max: number): string;
  optionalText(name: string, length_max: number): string | undefined;
  oneOf<T extends string | number>(name: string, values: readonly T[]): T;
};

export function readBodyFields(body: Record<string, unknown> | undefined): BodyFields {
  const text: BodyFields['text'] = (name, length_max) => {
    const value = body?.[name];
    const trimmed = typeof value === 'string' ? value.trim() : '';
    if (trimmed !== '' && trimmed.length <= length_max && !trimmed.includes('\0') && trimmed.isWellFormed())
      return trimmed;
    throw invalidField(name, `${name} must have 1 to ${length_max} characters.`);
  };
  return {
    text,
    optionalText: (name, length_max) => (body?.[name] === undefined ? undefined : text(name, length_max)),
    oneOf: (name, values) => {
      const value = values.find((allowed) => allowed === body?.[name]);
      if (value !== undefined) return value;
      throw invalidField(name, `${name} must be one of ${values.join(', ')}.`);
    },
  };
}

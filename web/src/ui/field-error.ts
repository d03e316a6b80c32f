import { Failure } from '../api.ts';

/** Returns the message of a refusal about this field. */
export function fieldError(error: Error | null, field: string): string | undefined {
  return error instanceof Failure && error.param === field ? error.message : undefined;
}

/** Returns an error that belongs to none of these fields, to be shown at the end of a form. */
export function otherError(error: Error | null, fields: readonly string[]): Error | null {
  const is_shown = error instanceof Failure && error.param !== undefined && fields.includes(error.param);
  return is_shown ? null : error;
}

export type FieldErrors = {
  /** Returns the problem of a field, which calls it as the page does. */
  of: (field: string) => string | undefined;
  /** The error if it is about none of the fields, to be shown at the end of the form. */
  other: Error | null;
};

/** Puts a refusal at its field. `labels`: the fields of a form by the names that the service has for them. */
export function fieldErrors(error: Error | null, labels: Readonly<Record<string, string>>): FieldErrors {
  return {
    of: (field) => {
      const message = fieldError(error, field);
      return message === undefined ? undefined : inPageWords(message, field, labels[field] ?? field);
    },
    other: otherError(error, Object.keys(labels)),
  };
}

/** `limit must be an amount; null for no limit.` becomes `Monthly limit must be an amount; empty for no limit.` */
export function inPageWords(message: string, field: string, label: string): string {
  const named = message.startsWith(`${field} `) ? label + message.slice(field.length) : message;
  return named
    .replaceAll(/\bnull for\b/g, 'empty for')
    .replaceAll(/such as "([^"]*)" or "([^"]*)"/g, 'such as $1 or $2')
    .replaceAll(/such as "([^"]*)"/g, 'such as $1');
}

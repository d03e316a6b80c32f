import { Failure } from '../../api.ts';

/** Returns the message of a refusal about this field. */
export function fieldError(error: Error | null, field: string): string | undefined {
  return error instanceof Failure && error.param === field ? error.message : undefined;
}

/** Returns an error that belongs to none of these fields, to be shown at the end of a form. */
export function otherError(error: Error | null, fields: readonly string[]): Error | null {
  const is_shown = error instanceof Failure && error.param !== undefined && fields.includes(error.param);
  return is_shown ? null : error;
}

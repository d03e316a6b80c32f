/** The programme that every client runs with every upstream style; the drivers say it in their SDK's words. */
export const steps = ['plain', 'stream', 'tools', 'image', 'leave', 'overflow'] as const;
export type Step = (typeof steps)[number];

/** A driver's line of one step: what the client handed out, what it raised, or that it offers no such thing. */
export type Line = { model: string; step: Step } & (
  | { text: string; pieces: number }
  | { error: { class: string; message: string } }
  | { absent: true }
);

export const hello = 'Grüße aus Łódź 😀 and hello there.';
export const words_of_image = 'I see a small image.';
export const tool_name = 'next_result';
export const results = ['result-of-0', 'result-of-1', 'result-of-2'];

/** A PNG of one pixel, in a form that no client has a reason to change. */
export const image_base64 =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

/** Returns all that a driver needs of this, as JSON in its environment. */
export function programmeFor(models: readonly string[]): string {
  return JSON.stringify({ models, steps, tool_name, image_base64 });
}

export function isLine(value: unknown): value is Line {
  return typeof value === 'object' && value !== null && 'model' in value && 'step' in value;
}

/** A message: its English, the English for several if it counts something, and the code of its placeholders. */
export type Message = { text: string; plural?: string; values: string[] };

export function findMessages(code: string, file: string): Message[];

export function translateCode(
  code: string,
  file: string,
  translate: (message: Message) => readonly string[] | undefined,
  language: string,
): string | undefined;

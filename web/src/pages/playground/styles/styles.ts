import type { ChatStyle } from '../../../../../src/dashboard/views/playground.ts';
import { completions } from './completions.ts';
import { messages } from './messages.ts';
import type { Style } from './style.ts';

export const styles: Record<ChatStyle, Style> = { completions, messages };

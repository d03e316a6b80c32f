import { useDebouncedValue } from '@mantine/hooks';
import { useQueries } from '@tanstack/react-query';
import type { EstimateView } from '../../../../src/dashboard/views/playground.ts';
import { api } from '../../api.ts';
import { usePlace } from '../../session.tsx';
import { sizeOf } from './attachments.ts';
import type { Draft } from './Composer.tsx';
import { attachmentsIn, nextTurn, readTools, type Settings } from './conversation.ts';
import { styles } from './styles/styles.ts';
import type { Turn } from './turn.ts';

/** To learn a price, the files of a conversation are sent along: not those that take long. */
const weighed_max_bytes = 1_000_000;

type PriceRequest = {
  models: readonly { id: string }[];
  turns: Readonly<Record<string, Turn[]>>;
  draft: Draft;
  settings: Settings;
  is_streaming: boolean;
};

export type ChatPrice =
  | { state: 'none' }
  /** It would take long to find out. */
  | { state: 'large' }
  | { state: 'known'; estimates: EstimateView[] };

/** Returns the hold of this message with each model, requested when typing pauses. */
export function useChatPrice({ models, turns, draft, settings, is_streaming }: PriceRequest): ChatPrice {
  const { account, base, may } = usePlace();
  const [settled] = useDebouncedValue(draft, 400);
  const [with_settings] = useDebouncedValue(settings, 400);
  const is_written = settled.text.trim() !== '' || settled.files.length > 0;
  const files = [...settled.files, ...models.flatMap(({ id }) => attachmentsIn(turns[id] ?? []))];
  const is_large = sizeOf(files) > weighed_max_bytes;
  const is_asked = may('run') && is_written && !is_streaming && !is_large && readTools(settings.tools) !== undefined;
  const { style } = with_settings;
  const queries = useQueries({
    queries: models.map(({ id }) => {
      const chat_turns = turns[id] ?? [];
      return {
        queryKey: [account.id, 'chat-price', id, chat_turns.length, settled, with_settings],
        queryFn: ({ signal }: { signal: AbortSignal }) => {
          const body = styles[style].bodyOf(
            id,
            [...chat_turns, nextTurn(chat_turns, settled.text, settled.files)],
            with_settings,
          );
          return api.post<EstimateView>(`${base}/chat/${style}/estimate`, body, { signal });
        },
        enabled: is_asked,
        staleTime: 5_000,
        gcTime: 5_000,
        retry: false,
      };
    }),
  });
  if (!is_written || is_streaming) return { state: 'none' };
  if (is_large) return { state: 'large' };
  const estimates = queries.flatMap(({ data }) => (data ? [data] : []));
  const is_whole = estimates.length === models.length && settled === draft && with_settings === settings;
  return is_whole ? { state: 'known', estimates } : { state: 'none' };
}

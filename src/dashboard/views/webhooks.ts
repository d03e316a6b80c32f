import type { DeliveryAttemptView, DeliveryView } from './activity.ts';

export type WebhooksView = {
  /** Attempts that a delivery gets before it is dropped. */
  attempts_max: number;
  /** Of an old secret, that signs beside the new one; null if there is none. */
  overlap_until: string | null;
};

export type DeliveryLineView = DeliveryView & { last_status: number | null; last_error: string | null };

export type DeliveryDetailView = DeliveryView & {
  /** The body of every attempt, byte for byte. */
  body: string;
  attempt_log: DeliveryAttemptView[];
};

/** Told to who may see it, and only when they ask. */
export type SecretView = { secret: string; before: string | null; overlap_until: string | null };

export type TestSentView = {
  id: string;
  delivered: boolean;
  status: number | null;
  error: string | null;
  duration_ms: number;
  answer: string | null;
};

import type { DeliveryAttemptView, DeliveryView } from './activity.ts';

export type WebhooksView = {
  /** Attempts that a delivery gets before it is dropped. */
  attempts_max: number;
  /** The end of an old secret, which signs beside the new one until then; null if there is none. */
  overlap_until: string | null;
};

export type DeliveryLineView = DeliveryView & { last_status: number | null; last_error: string | null };

export type DeliveryDetailView = DeliveryView & {
  /** The body of every attempt, byte for byte. */
  body: string;
  /** `request_headers`: as they were sent, without signatures. */
  attempt_log: (DeliveryAttemptView & { request_headers: Record<string, string> })[];
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
  /** The headers of the answer. */
  headers: Record<string, string>;
};

/** Deliveries to an endpoint on one day. */
export type EndpointDayView = { day: string; delivered: number; dropped: number; waiting: number };

export type EndpointView = {
  id: string;
  url: string;
  description: string;
  events: string[];
  filters: {
    models: readonly string[];
    keys: readonly string[];
    projects: readonly string[];
    metadata: Record<string, unknown>;
  };
  enabled: boolean;
  /** failing: its deliveries failed for days. gone: its receiver answered 410. */
  disabled_reason: 'manual' | 'failing' | 'gone' | null;
  disabled_at: string | null;
  failing_since: string | null;
  last_delivered_at: string | null;
  /** The end of a previous secret, which signs beside the present one until then. */
  overlap_until: string | null;
  created_at: string;
  /** The last days, oldest first; none after an act. */
  days: EndpointDayView[];
};

export type EndpointsView = {
  data: EndpointView[];
  endpoints_max: number;
  /** Kinds of events: an endpoint may ask for all of one, as `task.*`. */
  kinds: readonly string[];
  events: { type: string; meaning: string }[];
  disable_after_ms: number;
};

/** With the secret, which is shown this once. */
export type NewEndpointView = { endpoint: EndpointView; secret: string };

/** `next_from`: there are more events from this moment on. */
export type ReplayView = { events: number; next_from: string | null };

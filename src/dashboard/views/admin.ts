import type { Cost } from './common.ts';

export type AdminAccount = {
  id: string;
  name: string;
  currency: string;
  status: 'active' | 'blocked';
  balance: Cost;
  held: Cost;
  available: Cost;
  /** Of the last 30 days. */
  spend: Cost;
  created_at: string;
};

export type AdminAccountPage = AdminAccount & {
  members: { name: string; email: string; role: string; two_factor: boolean }[];
  keys: number;
  failures: { counted: number; limit: number };
};

/** How the service is: a word, and what it means. */
export type Light = { name: string; state: 'good' | 'warning' | 'bad'; detail: string };

export type AdminOverview = {
  lights: Light[];
  tasks: { queued: number; running: number; oldest_queued_s: number | null; created_24h: number; failed_24h: number };
  chats: { calls_24h: number; failed_24h: number; first_words_p50_ms: number | null; first_words_p95_ms: number | null };
  webhooks: { waiting: number; dropped_24h: number };
  spend: { currency: string; today: Cost; month: Cost }[];
};

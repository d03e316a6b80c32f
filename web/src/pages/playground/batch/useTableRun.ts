import { useQueryClient } from '@tanstack/react-query';
import { useEffect, useRef, useState } from 'react';
import type { EstimateView } from '../../../../../src/dashboard/views/playground.ts';
import { api, Failure, isRecord } from '../../../api.ts';
import { usePlace } from '../../../session.tsx';
import { renewBalance } from '../../../ui/balance.ts';
import type { Settings } from '../conversation.ts';
import { filled } from '../prompts/template.ts';
import { styles } from '../styles/styles.ts';
import { callOnce } from '../whole-call.ts';
import type { Table } from './csv.ts';
import { runRows, waiting_row, type RowState } from './run-rows.ts';
import type { Turn } from '../turn.ts';

type Job = { table: Table; model: string; text: string; settings: Settings };

const at_once = 4;

/** As many rows are weighed before a run; the others cost about as much. */
const weighed_rows_max = 10;

/** A full window of the key empties within a minute. */
const tries_max = 8;
const pause_ms = 10_000;

/** The call of a row: its fields are the values of the variables that have the names of the columns. */
function bodyOfRow({ table: { columns, rows }, model, text, settings }: Job, index: number) {
  const values = Object.fromEntries(columns.map((name, column) => [name, rows[index]?.[column] ?? '']));
  const turn: Turn = { role: 'user', text: filled(text, values), files: [] };
  return styles[settings.style].bodyOf(model, [turn], { ...settings, system: filled(settings.system, values) });
}

/** Runs a prompt on the rows of a table, by this page: whoever leaves it stops the run. */
export function useTableRun() {
  const { base, account } = usePlace();
  const queries = useQueryClient();
  const [states, setStates] = useState<RowState[]>([]);
  const [is_running, setRunning] = useState(false);
  const stopping = useRef<AbortController>(undefined);
  useEffect(() => () => stopping.current?.abort(), []);
  useWarning(is_running);

  const weigh = async (job: Job, signal: AbortSignal): Promise<{ held: number; currency: string }> => {
    const count = Math.min(job.table.rows.length, weighed_rows_max);
    const amounts: number[] = [];
    let currency = '';
    for (let index = 0; index < count; index += 1) {
      const path = `${base}/chat/${job.settings.style}/estimate`;
      const view = await api.post<EstimateView>(path, bodyOfRow(job, index), { signal });
      if (!view.ok) throw new Error(`Row ${index + 1}: ${view.errors[0]?.message ?? 'it cannot be run.'}`);
      amounts.push(Number(view.estimated_cost.exact ?? view.estimated_cost.amount));
      ({ currency } = view.estimated_cost);
    }
    const sum = amounts.reduce((total, amount) => total + amount, 0);
    return { held: (sum / count) * job.table.rows.length, currency };
  };

  const runOne = async (job: Job, index: number, signal: AbortSignal): Promise<RowState> => {
    for (let tries = 1; ; tries += 1) {
      try {
        const answer = await callOnce(`${base}/chat/${job.settings.style}`, bodyOfRow(job, index), signal);
        const { body, cost, took_ms, request_id } = answer;
        return { state: 'done', text: textOf(body), cost: cost.exact ?? cost.amount, took_ms, request_id };
      } catch (error) {
        if (signal.aborted) return { state: 'stopped' };
        const is_full = error instanceof Failure && error.status === 429;
        if (!is_full || tries === tries_max) return failedBy(error);
        await new Promise((resolve) => setTimeout(resolve, pause_ms));
      }
    }
  };

  const start = async (job: Job) => {
    const controller = new AbortController();
    stopping.current = controller;
    const { signal } = controller;
    const now: RowState[] = job.table.rows.map(() => waiting_row);
    setStates([...now]);
    setRunning(true);
    await runRows({
      count: now.length,
      at_once,
      signal,
      run: (index) => runOne(job, index, signal),
      show: (index, state) => {
        now[index] = state;
        setStates([...now]);
      },
    });
    setRunning(false);
    renewBalance(queries, account.id);
  };

  return { states, is_running, weigh, start, stop: () => stopping.current?.abort(), clear: () => setStates([]) };
}

function failedBy(error: unknown): RowState {
  const message = error instanceof Error ? error.message : String(error);
  return { state: 'failed', message, request_id: error instanceof Failure ? error.request_id : undefined };
}

/** The browser asks whoever closes the page while rows are running. */
function useWarning(is_running: boolean): void {
  useEffect(() => {
    if (!is_running) return undefined;
    const ask = (event: BeforeUnloadEvent) => event.preventDefault();
    window.addEventListener('beforeunload', ask);
    return () => window.removeEventListener('beforeunload', ask);
  }, [is_running]);
}

/** The text of an answer in either style. */
function textOf(body: Record<string, unknown>): string {
  const [choice] = Array.isArray(body['choices']) ? body['choices'] : [];
  const message: unknown = isRecord(choice) ? choice['message'] : undefined;
  if (isRecord(message)) return typeof message['content'] === 'string' ? message['content'] : JSON.stringify(message);
  const parts = (Array.isArray(body['content']) ? body['content'] : []).filter(isRecord);
  return parts.map((part) => (typeof part['text'] === 'string' ? part['text'] : '')).join('');
}

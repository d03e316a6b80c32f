import { Alert, Button, FileButton, Group, Progress, Stack, Table, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { usePlace } from '../../../session.tsx';
import { durationText } from '../../../ui/duration.ts';
import { ListTable } from '../../../ui/ListTable.tsx';
import { exactText, Money } from '../../../ui/Money.tsx';
import { Card } from '../../../ui/Page.tsx';
import type { Settings } from '../conversation.ts';
import { filled, variablesIn } from '../prompts/template.ts';
import { saveFile } from '../save-file.ts';
import { bytes_max, readCsv, rows_max, writeCsv, type Table as Rows } from './csv.ts';
import type { RowState } from './run-rows.ts';
import { useTableRun } from './useTableRun.ts';

type Props = { model: string; text: string; settings: Settings; close: () => void };

const shown_max = 100;

/** A prompt on each row of a CSV file: its columns are the values of the variables. */
export function TableRun({ model, text, settings, close }: Props) {
  const [rows, setRows] = useState<Rows>();
  const [problem, setProblem] = useState<string>();
  const run = useTableRun();
  const names = variablesIn(text, settings.system);
  const read = async (file: File | null) => {
    if (!file) return;
    setProblem(undefined);
    setRows(undefined);
    run.clear();
    try {
      if (file.size > bytes_max) throw new Error(`The file may have at most ${bytes_max / 1_000_000} MB.`);
      setRows(readCsv(await file.text()));
    } catch (error) {
      setProblem(error instanceof Error ? error.message : String(error));
    }
  };
  const has_begun = run.states.length > 0;
  return (
    <Card
      title="Run on a CSV file"
      side={
        <Button size="xs" variant="subtle" color="gray" onClick={close} disabled={run.is_running}>
          Close
        </Button>
      }
    >
      <Stack>
        <Text size="sm" c="dimmed">
          {names.length === 0
            ? 'Write variables such as {{name}} into the message. Each row of the file is one call, with its fields in their places.'
            : `Each row of the file is one call. Its columns must have the names of the variables: ${names.join(', ')}. At most ${rows_max} rows.`}
        </Text>
        <Group>
          <FileButton onChange={(file) => void read(file)} accept=".csv,text/csv,text/plain">
            {(button) => (
              <Button {...button} variant="light" disabled={run.is_running}>
                Choose a file
              </Button>
            )}
          </FileButton>
          {rows && <Text size="sm">{countText(rows)}</Text>}
        </Group>
        {problem !== undefined && (
          <Text size="sm" c="var(--mantine-color-error)" role="alert">
            {problem}
          </Text>
        )}
        {rows && !has_begun && <Preview rows={rows} names={names} {...{ model, text, settings, run }} />}
        {rows && has_begun && <Results rows={rows} run={run} />}
      </Stack>
    </Card>
  );
}

function countText({ rows: { length } }: Rows): string {
  return length === 1 ? '1 row' : `${length.toLocaleString('en-US')} rows`;
}

type Run = ReturnType<typeof useTableRun>;

type PreviewProps = Omit<Props, 'close'> & { rows: Rows; names: string[]; run: Run };

/** The first call as it will be, and what all of them hold. */
function Preview({ rows, names, model, text, settings, run }: PreviewProps) {
  const { account } = usePlace();
  const missing = names.filter((name) => !rows.columns.includes(name));
  const is_fine = missing.length === 0 && text.trim() !== '';
  const job = { table: rows, model, text, settings };
  const price = useQuery({
    queryKey: [account.id, 'table-price', model, text, settings, rows],
    queryFn: ({ signal }) => run.weigh(job, signal),
    enabled: is_fine,
    retry: false,
    staleTime: 60_000,
    gcTime: 0,
  });
  if (text.trim() === '') return <Text size="sm">The message is still empty: write it first.</Text>;
  if (missing.length > 0) {
    return (
      <Alert color="yellow" variant="light" title="Columns are missing">
        The file has no column {missing.join(', ')}. It has: {rows.columns.join(', ')}.
      </Alert>
    );
  }
  const values = Object.fromEntries(rows.columns.map((name, index) => [name, rows.rows[0]?.[index] ?? '']));
  return (
    <Stack gap="xs">
      <Text size="sm" fw={600}>
        The message of the first row
      </Text>
      <Text size="sm" style={{ whiteSpace: 'pre-wrap', overflowWrap: 'anywhere' }} lineClamp={6}>
        {filled(text, values)}
      </Text>
      <Group>
        <Button onClick={() => void run.start(job)} disabled={!price.data} loading={price.isFetching}>
          {rows.rows.length === 1 ? 'Run 1 row' : `Run ${rows.rows.length.toLocaleString('en-US')} rows`}
        </Button>
        <Text size="sm" role="status" c={price.error ? 'var(--mantine-color-error)' : 'dimmed'} flex={1} miw={160}>
          {price.error?.message}
          {price.data &&
            `At most about ${exactText({ amount: price.data.held.toFixed(6), currency: price.data.currency })} in all, by the longest answers. Four rows run at once.`}
        </Text>
      </Group>
    </Stack>
  );
}

function Results({ rows, run: { states, is_running, stop, clear } }: { rows: Rows; run: Run }) {
  const { account } = usePlace();
  const count = (...kinds: RowState['state'][]) => states.filter(({ state }) => kinds.includes(state)).length;
  const ended = count('done', 'failed', 'stopped');
  const cost = states.reduce((sum, row) => sum + (row.state === 'done' ? microsOf(row.cost) : 0n), 0n);
  const table = {
    columns: [...rows.columns, 'answer', 'state', 'cost', 'currency', 'milliseconds', 'call'],
    rows: rows.rows.map((fields, index) => [...fields, ...cellsOf(states[index], account.currency)]),
  };
  return (
    <Stack gap="sm">
      <Progress value={(100 * ended) / states.length} aria-label="Rows that have ended" animated={is_running} />
      <Group>
        <Text size="sm" role="status" aria-live={is_running ? 'off' : 'polite'}>
          {ended} of {states.length} rows have ended{count('failed') > 0 && `, ${count('failed')} of them failed`}.
        </Text>
        <Text size="sm">
          <Money cost={{ amount: decimalOf(cost), currency: account.currency }} exact />
        </Text>
      </Group>
      <Group>
        {is_running ? (
          <Button color="red" variant="light" onClick={stop}>
            Stop
          </Button>
        ) : (
          <>
            <Button onClick={() => saveFile('answers.csv', 'text/csv', writeCsv(table))}>Download as CSV</Button>
            <Button variant="default" onClick={clear}>
              Run again
            </Button>
          </>
        )}
      </Group>
      {is_running && (
        <Text size="xs" c="dimmed">
          The page runs the rows: it stops when you leave it. Calls that have begun are charged.
        </Text>
      )}
      {!is_running && count('failed', 'stopped') > 0 && (
        <Text size="xs" c="dimmed">
          The cost is that of the rows that are done. A call that was stopped, or whose answer was lost, may be charged
          as well: Activity has all of them.
        </Text>
      )}
      <ResultRows states={states} />
    </Stack>
  );
}

function ResultRows({ states }: { states: readonly RowState[] }) {
  const { account } = usePlace();
  return (
    <>
      <ListTable
        caption="Rows and their answers"
        columns={[
          { name: 'Row', align: 'right' },
          { name: 'Answer' },
          { name: 'Cost', align: 'right' },
          { name: 'Time', align: 'right' },
        ]}
      >
        {states.slice(0, shown_max).map((row, index) => (
          <Table.Tr key={index}>
            <Table.Td ta="right" className="figure">
              {index + 1}
            </Table.Td>
            <Table.Td style={{ overflowWrap: 'anywhere' }}>
              <Text size="sm" lineClamp={3}>
                {row.state === 'done' ? row.text : row.state === 'failed' ? `Failed: ${row.message}` : row.state}
              </Text>
            </Table.Td>
            <Table.Td ta="right" className="figure">
              {row.state === 'done' ? exactText({ amount: row.cost, currency: account.currency }) : '–'}
            </Table.Td>
            <Table.Td ta="right" className="figure">
              {row.state === 'done' ? durationText(row.took_ms) : '–'}
            </Table.Td>
          </Table.Tr>
        ))}
      </ListTable>
      {states.length > shown_max && (
        <Text size="sm" c="dimmed">
          The first {shown_max} rows are shown; the file has all of them.
        </Text>
      )}
    </>
  );
}

/** Only a call that is done says what it cost: one that was stopped, or whose answer was lost, may be charged all the same. */
function cellsOf(row: RowState | undefined, currency: string): string[] {
  if (row?.state === 'done') return [row.text, 'done', row.cost, currency, String(row.took_ms), row.request_id];
  if (row?.state === 'failed') return ['', `failed: ${row.message}`, '', currency, '', row.request_id ?? ''];
  return ['', row?.state ?? 'waiting', '', currency, '', ''];
}

/** Sums of money are whole numbers of millionths. */
function microsOf(amount: string): bigint {
  const [whole = '0', fraction = ''] = amount.split('.');
  return BigInt(whole) * 1_000_000n + BigInt(fraction.padEnd(6, '0').slice(0, 6));
}

function decimalOf(micros: bigint): string {
  return `${micros / 1_000_000n}.${String(micros % 1_000_000n).padStart(6, '0')}`;
}

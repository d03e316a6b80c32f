import { Center, Grid, Group, SimpleGrid, Stack, Tabs, Text } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState, type ReactNode } from 'react';
import type { ModelView } from '../../../../src/dashboard/views/models.ts';
import { usePlace } from '../../session.tsx';
import { renewBalance } from '../../ui/balance.ts';
import { durationText } from '../../ui/duration.ts';
import { LinkTo } from '../../ui/LinkTo.tsx';
import { Money } from '../../ui/Money.tsx';
import { Card, Figure } from '../../ui/Page.tsx';
import { exampleInput, samplesOf } from '../../ui/samples.ts';
import { Samples } from '../../ui/Samples.tsx';
import { JsonBox } from './JsonBox.tsx';
import { RunLine } from './RunLine.tsx';
import { ShareButton } from './ShareButton.tsx';
import { isRunnable } from './runnable.ts';
import { useEstimate } from './useEstimate.ts';
import { callOnce, type WholeAnswer } from './whole-call.ts';

type Input = Record<string, unknown>;

/** A kind of call that is answered in one piece: its path, its form, and what its answer looks like. */
export type KindOfCall = {
  path: '/rerank' | '/moderations';
  Form: (props: { input: Input; setInput: (input: Input) => void; disabled: boolean }) => ReactNode;
  /** `input`: that of the answer. */
  Answer: (props: { answer: Input; input: Input }) => ReactNode;
};

type Props = { model: ModelView; call: KindOfCall; begin: Input | undefined };

type Done = WholeAnswer & { input: Input };

/** One model that answers in the call itself and is no chat. */
export function CallPlayground({ model, call, begin }: Props) {
  const [input, setInput] = useState<Input>(() => begin ?? exampleInput(model));
  const { may, account, base, me } = usePlace();
  const queries = useQueryClient();
  const body = { model: model.id, ...input };
  const estimate = useEstimate(`${call.path}/estimate`, body);
  const run = useMutation({
    mutationFn: async (): Promise<Done> => ({ ...(await callOnce(`${base}${call.path}`, body)), input }),
    onSuccess: () => renewBalance(queries, account.id),
    onError: () => void estimate.refetch(),
  });
  const can_run = may('run') && !run.isPending && isRunnable(estimate);
  const go = () => can_run && run.mutate();
  return (
    <Grid gap="lg">
      <Grid.Col span={{ base: 12, md: 6 }}>
        <form
          onSubmit={(event) => event.preventDefault()} // an Enter in some box spends no money
          onKeyDown={(event) => {
            if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) {
              event.preventDefault();
              if (!event.repeat) go();
            }
          }}
        >
          <Card>
            <Stack>
              <Tabs defaultValue="form" keepMounted={false}>
                <Tabs.List mb="md" aria-label="The input as">
                  <Tabs.Tab value="form">Form</Tabs.Tab>
                  <Tabs.Tab value="json">JSON</Tabs.Tab>
                  <Tabs.Tab value="code">Code</Tabs.Tab>
                </Tabs.List>
                <Tabs.Panel value="form">
                  <call.Form input={input} setInput={setInput} disabled={!may('run')} />
                </Tabs.Panel>
                <Tabs.Panel value="json">
                  <JsonBox
                    label="Body"
                    description="All of it but the model."
                    value={input}
                    onChange={setInput}
                    disabled={!may('run')}
                  />
                </Tabs.Panel>
                <Tabs.Panel value="code">
                  <Samples samples={samplesOf({ base_url: me.base_url, model, input })} />
                </Tabs.Panel>
              </Tabs>
              <RunLine estimate={estimate} starting={run.isPending} can_run={can_run} error={run.error} run={go} />
              <Group ml={-8}>
                <ShareButton model={model.id} input={input} />
              </Group>
            </Stack>
          </Card>
        </form>
      </Grid.Col>
      <Grid.Col span={{ base: 12, md: 6 }}>
        <Card title="Result">{run.data ? <Result done={run.data} call={call} /> : <Nothing model={model} />}</Card>
      </Grid.Col>
    </Grid>
  );
}

function Nothing({ model }: { model: ModelView }) {
  return (
    <Center mih={220} style={{ border: '1px dashed var(--medley-line)', borderRadius: 8 }}>
      <Text c="dimmed" ta="center" maw={320} p="md">
        The answer of {model.display_name} appears here, with its actual cost.
      </Text>
    </Center>
  );
}

function Result({ done: { body, cost, took_ms, request_id, input }, call }: { done: Done; call: KindOfCall }) {
  return (
    <Stack>
      <call.Answer answer={body} input={input} />
      <SimpleGrid cols={2}>
        <Figure name="Cost" value={<Money cost={cost} exact />} />
        <Figure name="Time" value={durationText(took_ms)} />
      </SimpleGrid>
      <LinkTo href={`/chats/${request_id}`} size="sm">
        All details of this call
      </LinkTo>
    </Stack>
  );
}

import { Grid, Group, Stack, Tabs } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { ModelView } from '../../../../src/dashboard/views/models.ts';
import type { FieldProblem } from '../../../../src/dashboard/views/playground.ts';
import { api } from '../../api.ts';
import { usePlace } from '../../session.tsx';
import { Card } from '../../ui/Page.tsx';
import { exampleInput, samplesOf } from '../../ui/samples.ts';
import { Samples } from '../../ui/Samples.tsx';
import { BesideChooser, BesideResults, useBesideRuns } from './Beside.tsx';
import { Form } from './form/Form.tsx';
import { JsonBox } from './JsonBox.tsx';
import { Result } from './Result.tsx';
import { RunLine } from './RunLine.tsx';
import { Runs } from './Runs.tsx';
import { ShareButton } from './ShareButton.tsx';
import { isRunnable, useEstimate } from './useEstimate.ts';

type Input = Record<string, unknown>;

type Props = {
  model: ModelView;
  begin: Input | undefined;
  others: readonly ModelView[];
  /** Ids of the models that run with the same input. */
  beside: readonly string[];
  setBeside: (ids: string[]) => void;
  /** The task that is looked at. */
  run: string | undefined;
  setRun: (id: string) => void;
};

/** One model of images, video or audio: its input in three forms, its price, what comes out. */
export function MediaPlayground({ model, begin, others, beside: beside_ids, setBeside, run, setRun }: Props) {
  const [input, setInput] = useState<Input>(() => begin ?? exampleInput(model));
  const [picked, setPicked] = useState(0);
  const { may, account, base } = usePlace();
  const queries = useQueryClient();
  const estimate = useEstimate('/estimate', { model: model.id, input });
  const beside = others.filter((one) => beside_ids.includes(one.id) && one.modality === model.modality);
  const also = useBesideRuns(beside, input);
  const start = useMutation({
    onMutate: () => void also.start(),
    mutationFn: () => api.post<{ id: string }>(`${base}/generate`, { model: model.id, input }),
    onSuccess: ({ id }) => {
      setRun(id);
      void queries.invalidateQueries({ queryKey: [account.id, 'balance'] });
      void queries.invalidateQueries({ queryKey: [account.id, 'runs', model.id] });
    },
    onError: () => void estimate.refetch(),
  });
  const can_run = may('run') && !start.isPending && isRunnable(estimate);
  const go = () => can_run && start.mutate();
  return (
    <Grid gap="lg">
      <Grid.Col span={{ base: 12, md: 6 }}>
        <form
          onSubmit={(event) => event.preventDefault()} // an Enter in some box spends no money
          onKeyDown={(event) => {
            if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) {
              event.preventDefault();
              go();
            }
          }}
        >
          <Card>
            <Stack>
              <InputTabs
                key={picked} // controls that show JSON keep what is typed into them
                model={model}
                input={input}
                setInput={setInput}
                problems={estimate.view && !estimate.view.ok ? estimate.view.errors : []}
                disabled={!may('run')}
              />
              <BesideChooser model={model} others={others} beside={beside} setBeside={setBeside} input={input} />
              <RunLine estimate={estimate} starting={start.isPending} can_run={can_run} error={start.error} run={go} />
              <Group ml={-8}>
                <ShareButton model={model.id} input={input} />
              </Group>
            </Stack>
          </Card>
        </form>
      </Grid.Col>
      <Grid.Col span={{ base: 12, md: 6 }}>
        <Stack gap="lg">
          <Result id={run} model={model} />
          <BesideResults beside={beside} runs={also.runs} />
          <Runs
            model={model.id}
            run={run}
            pickUp={(id, taken) => {
              setInput(taken);
              setPicked(picked + 1);
              setRun(id);
            }}
          />
        </Stack>
      </Grid.Col>
    </Grid>
  );
}

type InputProps = {
  model: ModelView;
  input: Input;
  setInput: (input: Input) => void;
  problems: readonly FieldProblem[];
  disabled: boolean;
};

function InputTabs({ model, input, setInput, problems, disabled }: InputProps) {
  const { me } = usePlace();
  return (
    <Tabs defaultValue="form" keepMounted={false}>
      <Tabs.List mb="md" aria-label="The input as">
        <Tabs.Tab value="form">Form</Tabs.Tab>
        <Tabs.Tab value="json">JSON</Tabs.Tab>
        <Tabs.Tab value="code">Code</Tabs.Tab>
      </Tabs.List>
      <Tabs.Panel value="form">
        <Form
          schema={model.input_schema}
          value={input}
          onChange={setInput}
          problems={problems}
          path="input"
          disabled={disabled}
        />
      </Tabs.Panel>
      <Tabs.Panel value="json">
        <JsonBox
          label="Input"
          description="Missing fields take their defaults."
          value={input}
          onChange={setInput}
          disabled={disabled}
        />
      </Tabs.Panel>
      <Tabs.Panel value="code">
        <Samples samples={samplesOf({ base_url: me.base_url, model, input })} />
      </Tabs.Panel>
    </Tabs>
  );
}

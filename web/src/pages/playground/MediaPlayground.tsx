import { Grid, Group, Stack, Tabs, Text } from '@mantine/core';
import { useState } from 'react';
import type { ModelView } from '../../../../src/dashboard/views/models.ts';
import type { EstimateView, FieldProblem } from '../../../../src/dashboard/views/playground.ts';
import { usePlace } from '../../session.tsx';
import { exactText } from '../../ui/Money.tsx';
import { Card } from '../../ui/Page.tsx';
import { exampleInput, samplesOf } from '../../ui/samples.ts';
import { Samples } from '../../ui/Samples.tsx';
import { BesideResults } from './beside/BesideResults.tsx';
import { Compare } from './beside/Compare.tsx';
import { Differences } from './beside/Differences.tsx';
import { estimateTogether } from './beside/estimate-together.ts';
import { areComparable, inputFor, sharedInput } from './beside/shared-input.ts';
import { useRuns, type Runs as RunsByModel } from './beside/useRuns.ts';
import { Form } from './form/Form.tsx';
import { problemText } from './form/problems.ts';
import { JsonBox } from './JsonBox.tsx';
import { Result } from './Result.tsx';
import { RunLine } from './RunLine.tsx';
import { Runs } from './Runs.tsx';
import { ShareButton } from './ShareButton.tsx';
import { isRunnable } from './runnable.ts';
import { useEstimates } from './useEstimate.ts';

type Input = Record<string, unknown>;

type Props = {
  model: ModelView;
  begin: Input | undefined;
  others: readonly ModelView[];
  /** Ids of the models that run with the same input. */
  beside: readonly string[];
  setBeside: (ids: string[]) => void;
  /** Tasks that are looked at, by their model. */
  runs: RunsByModel;
  setRuns: (runs: RunsByModel) => void;
  /** Goes on with one of the models, with this input and its run. */
  use: (model: ModelView, input: Input, run: string | undefined) => void;
};

const at_once_max = 4;

/** The state of the page: the input, the models that take it, their prices and runs. */
function useMedia({ model, begin, others, beside, runs, setRuns }: Props) {
  const { may } = usePlace();
  /** `picked` counts the earlier inputs that took the place of this one. */
  const [{ input, picked }, setState] = useState(() => ({ input: begin ?? exampleInput(model), picked: 0 }));
  const comparable = others.filter((one) => one.id !== model.id && areComparable(model, one));
  const compared = beside.flatMap((id) => comparable.filter((one) => one.id === id)).slice(0, at_once_max - 1);
  const models = [model, ...compared];
  const { schema, differences } = sharedInput(models);
  const is_alone = compared.length === 0;
  // Fields of one model alone wait until it is alone again.
  const shownOf = (whole: Input) => (is_alone ? whole : inputFor({ input_schema: schema }, whole));
  const shown = shownOf(input);
  const changed = (before: Input, change: (before: Input) => Input) => {
    if (is_alone) return change(before);
    const shared = shownOf(before);
    const hidden = Object.entries(before).filter(([name]) => !Object.hasOwn(shared, name));
    return { ...Object.fromEntries(hidden), ...change(shared) };
  };
  // An upload that was for another input by the time it ends changes nothing.
  const update = (change: (before: Input) => Input) =>
    setState((now) => (now.picked === picked ? { ...now, input: changed(now.input, change) } : now));
  const pickUp = (taken: Input) => setState((now) => ({ input: taken, picked: now.picked + 1 }));
  const inputOf = (one: ModelView) => (is_alone ? input : inputFor(one, shown));
  const { views, ...rest } = useEstimates(
    '/estimate',
    models.map((one) => ({ model: one.id, input: inputOf(one) })),
  );
  const names = models.map(({ display_name }) => display_name);
  const estimate = { ...rest, view: views && estimateTogether(views, names) };
  const running = useRuns({ models, inputOf, runs, setRuns });
  const can_run = may('run') && !running.is_starting && isRunnable(estimate, models.length);
  const go = async () => {
    if (can_run && !(await running.start())) estimate.refetch();
  };
  return {
    picked,
    pickUp,
    comparable,
    compared,
    models,
    is_alone,
    schema,
    differences,
    shown,
    update,
    inputOf,
    views,
    estimate,
    running,
    can_run,
    go: () => void go(),
  };
}

/** One or several models of images, video or audio: the input in three forms, the price, what comes out. */
export function MediaPlayground(props: Props) {
  const { model, use, setRuns } = props;
  const page = useMedia(props);
  const { models, is_alone, running, go } = page;
  const place = running.placeOf(model);
  const id = place.is === 'task' ? place.id : undefined;
  return (
    <Grid gap="lg">
      <Grid.Col span={is_alone ? { base: 12, md: 6 } : { base: 12, md: 5, xl: 4 }}>
        <form
          onSubmit={(event) => event.preventDefault()} // an Enter in some box spends no money
          onKeyDown={(event) => {
            if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) {
              event.preventDefault();
              if (!event.repeat) go();
            }
          }}
        >
          <InputCard {...props} page={page} />
        </form>
      </Grid.Col>
      <Grid.Col span={is_alone ? { base: 12, md: 6 } : { base: 12, md: 7, xl: 8 }}>
        <Stack gap="lg">
          {is_alone ? (
            <Result id={id} model={model} />
          ) : (
            <BesideResults
              models={models}
              placeOf={running.placeOf}
              use={(one, run) => use(one, page.inputOf(one), run)}
            />
          )}
          <Runs
            model={model.id}
            run={id}
            pickUp={(run, taken) => {
              page.pickUp(taken);
              running.clear();
              setRuns({ [model.id]: run });
            }}
          />
        </Stack>
      </Grid.Col>
    </Grid>
  );
}

type CardProps = Props & { page: ReturnType<typeof useMedia> };

/** The input, the models that get it, and the button. */
function InputCard({ model, setBeside, page }: CardProps) {
  const { models, compared, is_alone, running, picked } = page;
  const place = running.placeOf(model);
  return (
    <Card>
      <Stack>
        <InputTabs
          key={picked} // controls that show JSON keep what is typed into them
          model={model}
          page={page}
        />
        {page.comparable.length > 0 && (
          <Compare
            model={model}
            others={page.comparable}
            beside={compared}
            setBeside={setBeside}
            models_max={at_once_max}
            description={`A run starts every model, up to ${at_once_max} at once, with the fields that all of them take.`}
            nothing="No other model of this kind"
          />
        )}
        <Differences differences={page.differences} />
        {!is_alone && <Holds models={models} views={page.views} />}
        <RunLine
          estimate={page.estimate}
          starting={running.is_starting}
          can_run={page.can_run}
          error={is_alone && place.is === 'refused' ? place.error : null}
          run={page.go}
          models={models.length}
        />
        <Group ml={-8}>
          <ShareButton
            model={model.id}
            beside={compared.map(({ id }) => id).join(',') || undefined}
            input={page.shown}
          />
        </Group>
      </Stack>
    </Card>
  );
}

/** The hold of each model. */
function Holds({ models, views }: { models: readonly ModelView[]; views: readonly EstimateView[] | undefined }) {
  return (
    <Text size="sm" c="dimmed" component="div" role="status">
      {models.map(({ id, display_name }, index) => (
        <div key={id}>
          {display_name}: {holdText(views?.[index])}
        </div>
      ))}
    </Text>
  );
}

function holdText(view: EstimateView | undefined): string {
  if (!view) return '…';
  if (view.ok) return `holds ${exactText(view.estimated_cost)}`;
  return view.errors[0] ? problemText(view.errors[0]) : 'its input has errors';
}

function InputTabs({ model, page }: { model: ModelView; page: ReturnType<typeof useMedia> }) {
  const { me, may } = usePlace();
  const { schema, shown, update, is_alone, estimate, inputOf } = page;
  const problems: readonly FieldProblem[] = estimate.view && !estimate.view.ok ? estimate.view.errors : [];
  return (
    <Tabs defaultValue="form" keepMounted={false}>
      <Tabs.List mb="md" aria-label="The input as">
        <Tabs.Tab value="form">Form</Tabs.Tab>
        <Tabs.Tab value="json">JSON</Tabs.Tab>
        <Tabs.Tab value="code">Code</Tabs.Tab>
      </Tabs.List>
      <Tabs.Panel value="form">
        <Form schema={schema} value={shown} update={update} problems={problems} path="input" disabled={!may('run')} />
      </Tabs.Panel>
      <Tabs.Panel value="json">
        <JsonBox
          label="Input"
          description="Missing fields take their defaults."
          value={shown}
          onChange={(next) => update(() => next)}
          disabled={!may('run')}
        />
      </Tabs.Panel>
      <Tabs.Panel value="code">
        {!is_alone && (
          <Text size="sm" c="dimmed" mb="xs">
            The call of {model.display_name}. Those of the others have their own model and fields.
          </Text>
        )}
        <Samples samples={samplesOf({ base_url: me.base_url, model, input: inputOf(model) })} />
      </Tabs.Panel>
    </Tabs>
  );
}

import { Alert, Group, Select, Stack, Text } from '@mantine/core';
import { useHotkeys } from '@mantine/hooks';
import { getRouteApi } from '@tanstack/react-router';
import { useEffect, useRef, useState } from 'react';
import type { TaskView } from '../../../../src/dashboard/views/activity.ts';
import type { ModelView } from '../../../../src/dashboard/views/models.ts';
import type { PromptView } from '../../../../src/dashboard/views/playground.ts';
import { usePlace } from '../../session.tsx';
import { isInPlayground, isMedia } from '../../ui/kinds.ts';
import { ButtonTo, LinkTo } from '../../ui/LinkTo.tsx';
import { ModelStatus } from '../../ui/ModelStatus.tsx';
import { Page } from '../../ui/Page.tsx';
import { priceTexts } from '../../ui/price.ts';
import { Empty, Failed, Loaded } from '../../ui/states.tsx';
import { useTask } from '../../ui/TaskResult.tsx';
import { roleName } from '../../ui/roles.ts';
import { useModels } from '../models/queries.ts';
import { runsIn, runText } from './beside/run-text.ts';
import { CallPlayground } from './CallPlayground.tsx';
import { ChatPlayground } from './ChatPlayground.tsx';
import { MediaPlayground } from './MediaPlayground.tsx';
import { moderation } from './Moderation.tsx';
import { usePrompt } from './prompts/queries.ts';
import { only_for_all } from './prompts/words.ts';
import type { Replay } from './replay/replay.ts';
import { useReplay } from './replay/useReplay.ts';
import { rerank } from './Rerank.tsx';
import { inputOf, type PlaygroundSearch } from './search.ts';

const route = getRouteApi('/signed-in/playground');

/** Any model, run by hand, with its price before and after. */
export function Playground() {
  const query = useModels();
  return (
    <Page title="Playground" about="Run any model by hand, at the prices of the API and from the same balance.">
      <Loaded query={query} height={520}>
        {(models) => <WithTask models={models} />}
      </Loaded>
    </Page>
  );
}

/** "Run again" begins with the model and the input of a task; so does an address that shows a run. */
function WithTask({ models }: { models: ModelView[] }) {
  const search = route.useSearch();
  const { account } = usePlace();
  const [first_run] = useState(search.run?.split(',').find((id) => id !== '')); // later ones are made from the form that is there
  const id = search.task ?? first_run;
  const task = useTask(id);
  const [first_prompt] = useState(search.prompt); // a later one is put into the boxes that are there
  const prompt = usePrompt(search.prompt);
  const replay = useReplay(search.chat === undefined ? search.call : undefined);
  if (id !== undefined && task.isPending) return <Loaded query={task}>{() => null}</Loaded>;
  if (first_prompt !== undefined && first_prompt === search.prompt && prompt.isLoading)
    return <Loaded query={prompt}>{() => null}</Loaded>;
  if (search.call !== undefined && search.chat === undefined && replay.isPending)
    return <Loaded query={replay}>{() => null}</Loaded>;
  const error = task.error ?? prompt.error ?? replay.error;
  return (
    <Stack>
      {error && <Failed error={error} />}
      {search.prompt !== undefined && account.is_limited && (
        <Alert color="yellow" variant="light" role="alert">
          {only_for_all}
        </Alert>
      )}
      <Chosen models={models} task={task.data} prompt={prompt.data} replay={replay.data} />
    </Stack>
  );
}

type ChosenProps = {
  models: ModelView[];
  task: TaskView | undefined;
  prompt: PromptView | undefined;
  replay: Replay | undefined;
};

/** The model that is chosen, and what the address says of it. */
function useChosen({ models: all, task, prompt, replay }: ChosenProps) {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const set = (change: PlaygroundSearch) =>
    void navigate({ search: (before) => ({ ...before, ...change }), replace: true, resetScroll: false });
  const models = all.filter(({ modality }) => isInPlayground(modality));
  const model_id = search.model ?? task?.model ?? prompt?.body.model ?? replay?.model;
  const model = model_id === undefined ? firstOf(models) : models.find(({ id }) => id === model_id);
  const beside = (search.beside ?? '').split(',').filter((id) => id !== '');
  const runs = model ? runsIn(search.run, [model.id, ...beside]) : {};
  const setBeside = (ids: string[]) =>
    model && set({ model: model.id, beside: ids.join(',') || undefined, run: runText(runs, [model.id, ...ids]) });
  const setRuns = (next: Record<string, string>) =>
    model && set({ model: model.id, run: runText(next, [model.id, ...beside]) });
  const [taken, setTaken] = useState<{ model: string; input: Record<string, unknown> }>();
  const use = (one: ModelView, input: Record<string, unknown>, run: string | undefined) => {
    setTaken({ model: one.id, input });
    set({ model: one.id, beside: undefined, run, task: undefined, input: undefined });
  };
  const begin =
    search.input ??
    (taken && taken.model === model?.id ? taken.input : undefined) ??
    (task && model && [model.id, ...beside].includes(task.model) ? inputOf(task) : undefined);
  const choose = (id: string) => {
    const is_chat = models.some((one) => one.id === id && one.modality === 'chat');
    setTaken(undefined);
    const call = is_chat ? search.call : undefined; // the same can be asked of another model
    set({ model: id, run: undefined, task: undefined, chat: undefined, call, prompt: undefined, input: undefined });
  };
  return { search, set, models, model_id, model, beside, setBeside, runs, setRuns, use, begin, choose };
}

function Chosen(props: ChosenProps) {
  const { models: all, prompt, replay } = props;
  const { search, set, models, model_id, model, choose, beside, setBeside, ...media } = useChosen(props);
  const not_here = all.find(({ id, modality }) => !isInPlayground(modality) && id === model_id);
  return (
    <Stack gap="lg">
      <Picker models={models} model={model} choose={choose} />
      {not_here && <NotHere model={not_here} />}
      {!model && !not_here && model_id !== undefined && (
        <Empty title="There is no such model">{model_id} is not offered here, or no longer.</Empty>
      )}
      {!model && model_id === undefined && <Empty title="No models yet">There is nothing to run.</Empty>}
      {model && isMedia(model.modality) && (
        <MediaPlayground
          key={`${model.id} ${search.task ?? ''} ${JSON.stringify(search.input)}`}
          model={model}
          others={models}
          beside={beside}
          setBeside={setBeside}
          {...media}
        />
      )}
      {(model?.modality === 'rerank' || model?.modality === 'moderation') && (
        <CallPlayground
          key={`${model.id} ${JSON.stringify(search.input)}`}
          model={model}
          call={model.modality === 'rerank' ? rerank : moderation}
          begin={search.input}
        />
      )}
      {model?.modality === 'chat' && (
        <ChatPlayground
          key={JSON.stringify(search.input)}
          model={model}
          begin={search.input}
          prompt={prompt}
          openPrompt={(id) => set({ prompt: id, ...(id === undefined && { model: model.id }) })}
          others={models.filter(({ modality }) => modality === 'chat')}
          beside={beside}
          setBeside={setBeside}
          chat={search.chat}
          setChat={(id) => set({ model: model.id, chat: id, call: undefined })}
          replay={replay}
          openChat={(id, [first = model.id, ...more]) =>
            set({ model: first, beside: more.join(',') || undefined, chat: id, call: undefined, input: undefined })
          }
        />
      )}
    </Stack>
  );
}

/** An embedding is a list of numbers: there is nothing to look at, and its page has the code. */
function NotHere({ model: { id, display_name } }: { model: ModelView }) {
  return (
    <Empty
      title={`${display_name} runs by the API only`}
      action={<ButtonTo href={`/models/${encodeURI(id)}`}>Code for this model</ButtonTo>}
    >
      Embedding models answer with numbers, so the playground has nothing to show. Choose another model, or call this
      one at <code>/v1/embeddings</code>.
    </Empty>
  );
}

/** The cheapest that makes images by the piece, else the first. */
function firstOf(models: ModelView[]): ModelView | undefined {
  const priced = models.flatMap((model) => {
    const row = model.modality === 'image' ? model.pricing.find(({ unit }) => unit === 'image') : undefined;
    return row && model.status === 'available' ? [{ model, amount: Number(row.amount) / row.per }] : [];
  });
  return priced.toSorted((a, b) => a.amount - b.amount)[0]?.model ?? models[0];
}

const groups = [
  ['image', 'Images'],
  ['video', 'Videos'],
  ['audio', 'Audio'],
  ['chat', 'Chat'],
  ['rerank', 'Rerank'],
  ['moderation', 'Moderation'],
] as const;

type PickerProps = { models: ModelView[]; model: ModelView | undefined; choose: (id: string) => void };

function Picker({ models, model, choose }: PickerProps) {
  const box = useRef<HTMLInputElement>(null);
  const { may, account } = usePlace();
  useHotkeys([['mod+shift+m', () => box.current?.focus()]], []);
  useEffect(() => {
    if (model) document.title = `${model.display_name} · Playground · Medley`;
  }, [model]);
  return (
    <Stack gap="xs">
      <Select
        ref={box}
        label="Model"
        placeholder="Choose a model"
        maw={560}
        searchable
        allowDeselect={false}
        value={model?.id ?? null}
        onChange={(id) => id !== null && choose(id)}
        nothingFoundMessage="No model matches"
        maxDropdownHeight={360}
        data={groups.map(([kind, group]) => ({
          group,
          items: models
            .filter(({ modality }) => modality === kind)
            .map(({ id, display_name }) => ({ value: id, label: `${display_name} (${id})` })),
        }))}
      />
      {model && (
        <Group gap="sm">
          <ModelStatus of={model.status} />
          <Text size="sm" className="figure">
            {priceTexts(model.pricing).join(', ')}
          </Text>
          <LinkTo href={`/models/${encodeURI(model.id)}`} size="sm">
            About this model
          </LinkTo>
        </Group>
      )}
      {!may('run') && (
        <Text role="note" fw={600}>
          Your role here ({roleName(account.role)}) does not run models. Ask an owner of the account for the role of a
          developer.
        </Text>
      )}
    </Stack>
  );
}

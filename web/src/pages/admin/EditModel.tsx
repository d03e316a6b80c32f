import { Radio, Stack, Text, TextInput } from '@mantine/core';
import { useForm } from '@mantine/form';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import type {
  AddedModelView,
  AddedProviderView,
  AdminProviders,
} from '../../../../src/dashboard/views/admin-providers.ts';
import { api } from '../../api.ts';
import { FormEnd } from '../../ui/FormEnd.tsx';
import { Modal } from '../../ui/Modal.tsx';
import { priceTexts } from '../../ui/price.ts';
import { fieldError, otherError } from '../../ui/field-error.ts';
import { typedPrice, typedUnits, type Amounts } from './provider-prices.ts';

type Props = { view: AdminProviders; provider: AddedProviderView; model: AddedModelView; close: () => void };

type Values = { basis: string; margin: string; amounts: Amounts };

function usePricing({ provider, model, close }: Props) {
  const queries = useQueryClient();
  const { id, kind, margin, has_own_price, price } = model;
  const amounts = typedUnits(kind).map(({ unit }) => [unit, price.find((row) => row.unit === unit)?.amount ?? '']);
  const form = useForm<Values>({
    initialValues: {
      basis: has_own_price ? 'typed' : margin === null ? 'provider' : 'margin',
      margin: margin ?? provider.margin,
      amounts: Object.fromEntries(amounts),
    },
    validate: {
      amounts: (typed, { basis }) =>
        basis === 'typed' && !typedPrice(kind, typed) ? 'Enter amounts such as 0.25; 0 makes it free.' : null,
    },
  });
  const mutation = useMutation({
    mutationFn: (values: Values) =>
      api.post(`/dash/admin/providers/${provider.name}/models/change`, { model: id, ...changeOf(values, kind) }),
    onSuccess: async () => {
      await queries.invalidateQueries();
      close();
    },
  });
  return { form, ...mutation };
}

/** Changes the price of a model: by the provider's margin, a margin of its own, or a price that is typed. */
export function EditModel(props: Props) {
  const { view, provider, model, close } = props;
  const { form, mutate, error, isPending } = usePricing(props);
  const units = typedUnits(model.kind);
  const is_listed = model.list_price.length > 0;
  const amounts_error = form.errors['amounts'] ?? fieldError(error, 'price');
  return (
    <Modal opened onClose={close} title={`Price of ${model.id}`} centered closeButtonProps={{ 'aria-label': 'Close' }}>
      <form onSubmit={form.onSubmit((values) => mutate(values))} noValidate>
        <Stack>
          <ListPrice model={model} />
          <Radio.Group label="Price for your callers" {...form.getInputProps('basis')}>
            <Stack gap="xs" mt="xs">
              <Radio
                value="provider"
                label={`List price + ${provider.margin} %, as the provider has it`}
                disabled={!is_listed}
              />
              <Radio value="margin" label="List price + a margin of its own" disabled={!is_listed} />
              {units.length > 0 && <Radio value="typed" label="A price that I type" />}
            </Stack>
          </Radio.Group>
          {form.values.basis === 'margin' && (
            <TextInput
              label="Margin in percent"
              inputMode="decimal"
              autoComplete="off"
              {...form.getInputProps('margin')}
              error={fieldError(error, 'margin')}
            />
          )}
          {form.values.basis === 'typed' &&
            units.map(({ unit, label }) => (
              <TextInput
                key={unit}
                label={`${label}, in ${view.currency}`}
                inputMode="decimal"
                autoComplete="off"
                {...form.getInputProps(`amounts.${unit}`)}
                error={amounts_error}
              />
            ))}
          <FormEnd
            word="Save"
            color="orange"
            isPending={isPending}
            error={otherError(error, ['margin', 'price'])}
            cancel={close}
          />
        </Stack>
      </form>
    </Modal>
  );
}

function ListPrice({ model: { list_price } }: Pick<Props, 'model'>) {
  const text =
    list_price.length === 0
      ? 'The provider’s list has no price.'
      : `The provider’s list price: ${priceTexts(list_price).join(', ')}.`;
  return <Text size="sm">{text} New calls pay the new price at once; tasks keep the price of their creation.</Text>;
}

function changeOf({ basis, margin, amounts }: Values, kind: string) {
  if (basis === 'typed') return { price: typedPrice(kind, amounts), margin: null };
  return { price: null, margin: basis === 'margin' ? margin : null };
}

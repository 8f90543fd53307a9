import type { AuthenticatedCall } from '../call.ts';
import { choosePath } from '../choose-path.ts';
import type { Answered, Rejected } from '../result.ts';
import { forbiddenModel, listModels, unknownModel } from './list-models.ts';
import { listAnswer, modelAnswer } from './models-answer.ts';
import type { ModelsDialect, ModelsRequest } from './models-request.ts';

/**
 * Answers a request for the models of all upstreams, or for one of them. null if the model's upstream has to answer,
 * because its list does not contain the model.
 */
export async function answerModels(
  call: AuthenticatedCall,
  { dialect, id }: ModelsRequest,
): Promise<Answered | Rejected | null> {
  if (id !== null) return answerModel(call, dialect, id);
  return listAnswer(await listModels(call), dialect, call.query);
}

/** Finds a model where a call that names it would be sent: by its prefix, by patterns, or at the default upstream. */
async function answerModel(
  call: AuthenticatedCall,
  dialect: ModelsDialect,
  id: string,
): Promise<Answered | Rejected | null> {
  const chosen = choosePath(call, 'openai', id);
  if (chosen.kind === 'rejected') return chosen;
  const { upstream, prefix } = chosen;
  const model = id.slice(prefix.length);
  const forbidden = await forbiddenModel(call, upstream, model);
  if (forbidden !== null) return forbidden;
  const { models, missing } = await listModels(call, upstream);
  const found = models.find((one) => one.model.id === model);
  // Under the requested name.
  if (found !== undefined) return modelAnswer({ ...found, id }, dialect, missing);
  return dialect === 'gemini' ? unknownModel(upstream, model) : null;
}

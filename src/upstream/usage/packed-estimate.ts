import { packingsOf, type Packing } from '../body/packing.ts';
import { Unpacker } from '../body/unpacker.ts';
import {
  createEstimator,
  estimateCall,
  type BodyFacts,
  type BodyCallEstimate,
} from './estimate.ts';

const UNPACKED_BYTES_MAX = 16 * 1024 * 1024;

/** The estimate of a body. If `isRead` is false, the body stayed compressed and only its length was used. */
interface BodyEstimate {
  readonly estimate: BodyCallEstimate;
  readonly isRead: boolean;
}

/** Estimates a call by its body, which may be compressed. */
export async function estimateBody(facts: BodyFacts): Promise<BodyEstimate> {
  const packings = packingsOf(facts.contentEncoding);
  if (packings?.length === 0) return { estimate: estimateCall(facts), isRead: true };
  const read = packings === null ? null : await estimatePacked(facts, packings);
  return { estimate: read ?? estimateCall(facts), isRead: read !== null };
}

async function estimatePacked(
  facts: BodyFacts,
  packings: readonly Packing[],
): Promise<BodyCallEstimate | null> {
  if (facts.chunks.length === 0) return null;
  const estimator = createEstimator({ ...facts, contentLength: null, contentEncoding: null });
  let bytes = 0;
  const unpacker = new Unpacker(packings, (piece) => {
    bytes += piece.length;
    if (bytes > UNPACKED_BYTES_MAX) unpacker.close();
    else estimator.push(piece);
  });
  try {
    for (const chunk of facts.chunks) await unpacker.push(chunk);
    await unpacker.end();
    return estimator.end();
  } catch {
    return null;
  } finally {
    unpacker.close();
  }
}

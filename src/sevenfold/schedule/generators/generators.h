#pragma once

#include "sevenfold/schedule/ir.h"
#include "sevenfold/schedule/request.h"

// One function per algorithm, each in the file of its name. P ranks, M micro batches, v chunks per
// rank; Tf, Tb, Tw times of F, B and W through a rank's whole share, T their sum; free links. Each
// wants a request with P, M and v of at least 1 that the table in algorithms.h allows, and makes
// rows that find_fault() finds nothing wrong with. docs/pipeline_parallelism.md has drawings and
// figures.
namespace sevenfold {

// All forwards, then all backwards. Time (M+P-1)T, memory M.
// Source: Huang et al. 2019 (GPipe).
Schedule gpipe(const ScheduleRequest& request);

// Chunk by chunk all forwards, then chunk by chunk backwards all backwards, last micro batch first.
// Time MT + (P-1)T/v for M >= P, memory M. Touches each chunk's weights once per direction.
// Source: Lamy-Poirier 2022 (breadth-first pipeline parallelism), arXiv 2211.05953.
Schedule looped_bfs(const ScheduleRequest& request);

// Groups of micro batches take turns over the chunks; warm-up 2(P-1-r) + (v-1)g. Time MT + (P-1)T/v
// where P divides M, memory (2(P-1) + (v-1)g + 1)/v, traffic times v. Source: Narayanan et al.
// 2021, section 2.2.
Schedule interleaved_1f1b(const ScheduleRequest& request);

// 1F1B's warm-up with B and W apart, W of rank r lagging r micro batches. Time MT + (P-1)(Tf+Tb-Tw)
// for M >= P, memory P. Source: Qi et al. 2023 (zero bubble), arXiv 2401.10241, section 2.1.
Schedule zb_h1(const ScheduleRequest& request);

// Twice the warm-up, lag 2r. Longest rank MT + (P-1)(Tf+Tb-2Tw) for M >= 2P-1, memory 2P-1; for
// shorter batches zb_h1 is better. The makespan gains nothing over zb_h1. Source: as above,
// section 2.2.
Schedule zb_h2(const ScheduleRequest& request);

// Interleaved with B and W apart: warm-up (v-1)g + P-1-r, W lagging r chunk passes. Time MT +
// (P-1)(Tf+Tb-Tw)/v and memory P where P divides M. Source: the arXiv paper above and the table
// that PyTorch calls InterleavedZeroBubble.
Schedule zb_interleaved(const ScheduleRequest& request);

// Two chunks in a V, written out for equal times. Longest rank MT at Tf = Tb = Tw for M >= 2P-1,
// memory P. Shorter batches run the rows of 2P-1 that exist. Source: arXiv 2401.10241, section 6.
Schedule zbv_formatted(const ScheduleRequest& request);

// Micro batches enter at both ends; every stage lies on two ranks. Cells of a forward and a
// backward overlap. P even, M even and at least 2P. Time MT + (P/2-1)(Tf+2Tb-Tw), memory P+1, two
// copies of the weights. Source: DeepSeek-AI 2024 (DeepSeek-V3), arXiv 2412.19437, and its
// published program.
Schedule dualpipe(const ScheduleRequest& request);

// The same folded into a V: one copy of the weights, any P, M at least 2P. Time MT +
// (P-1)(Tf+2Tb-Tw)/2, memory P + 1/2.
Schedule dualpipev(const ScheduleRequest& request);

// Issues F, B and W in turn at their earliest times under request.max_memory (none: as many micro
// batches as help), with W into the gaps; the shortest longest rank of eight variants. A limit of P
// is what the paper calls ZB-1p, 2P is ZB-2p. Source: arXiv 2401.10241, section 3.1.
Schedule zero_bubble_heuristic(const ScheduleRequest& request);

// Building blocks of two chunks in a V, repeated, and fitted to the request's times by
// justification and a short search (v_search.h). At equal times and free links v_half has about
// half of 1F1B's bubble with memory (P+2) div 2, v_min about two thirds with (P+4) div 3, and v_zb
// the least makespan that a V can have, MT + (P-1)Tf/2, with P. Source: Qi et al. 2024
// (controllable memory), arXiv 2405.15362.
Schedule v_half(const ScheduleRequest& request);
Schedule v_min(const ScheduleRequest& request);
Schedule v_zb(const ScheduleRequest& request);

// 1F1B in a V, backward undivided, memory about 2P/3. Source: as above.
Schedule one_f_one_b_v(const ScheduleRequest& request);

// A search over V schedules within request.max_memory (else P): the shortest makespan that it
// finds.
Schedule v_adaptive(const ScheduleRequest& request);

// The same search for the shortest longest rank, within the memory of 1F1B (P) or less.
Schedule zbv_heuristic(const ScheduleRequest& request);

}  // namespace sevenfold

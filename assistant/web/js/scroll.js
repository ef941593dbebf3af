// The talk stays at its end while it grows, unless somebody reads further up.
import { find } from "./dom.js";

const scroller = () => find("#talk");

export const nearEnd = () => !scroller() || scroller().scrollHeight - scroller().scrollTop - scroller().clientHeight < 120;
export const toEnd = () => scroller()?.scrollTo({ top: scroller().scrollHeight });

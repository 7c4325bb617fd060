import java.io.File;
import java.lang.reflect.*;
import java.nio.file.Files;
import java.util.*;

/** Asks Kafka's own ProducerStateManager what ADR 57 says of it: javac -cp ".kafka/VERSION/*" -d OUT ProducerFacts.java. */
public class ProducerFacts {
    static final String L = "org.apache.kafka.storage.internals.log.";
    static Object psm; static long now = 1_800_000_000_000L; static Class<?> cMgr, cInfo, cMarker, cType, cOrigin, cMeta; static Object abort;
    static Object client, coord;
    static Class<?> first(String... names) throws Exception { for (String n : names) try { return Class.forName(n); } catch (ClassNotFoundException e) {} throw new Exception(String.join(",", names)); }
    static Object time() throws Exception {
        Class<?> t = Class.forName("org.apache.kafka.common.utils.Time");
        return Proxy.newProxyInstance(t.getClassLoader(), new Class<?>[]{t}, (p, m, a) -> m.getName().equals("milliseconds") ? (Object) now : m.getName().startsWith("nano") || m.getName().startsWith("hiRes") ? (Object) (now * 1000000L) : null);
    }
    static void fresh() throws Exception {
        Class<?> cfg = Class.forName(L + "ProducerStateManagerConfig");
        Object c = cfg.getConstructors()[0].newInstance(86400000, true);
        Class<?> tp = Class.forName("org.apache.kafka.common.TopicPartition");
        psm = cMgr.getConstructors()[0].newInstance(tp.getConstructor(String.class, int.class).newInstance("t", 0), Files.createTempDirectory("psm").toFile(), 900000, c, time());
    }
    static long offset = 0;
    static String data(long pid, int epoch, int s0, int s1, long ts, boolean txn) throws Exception {
        Object info = cMgr.getMethod("prepareUpdate", long.class, cOrigin).invoke(psm, pid, client);
        try {
            // duplicates first, as UnifiedLog does
            Optional<?> last = (Optional<?>) cMgr.getMethod("lastEntry", long.class).invoke(psm, pid);
            if (last.isPresent()) {
                Object e = last.get();
                Method m = e.getClass().getDeclaredMethod("batchWithSequenceRange", int.class, int.class); m.setAccessible(true);
                short ep = (short) e.getClass().getMethod("producerEpoch").invoke(e);
                if (ep == epoch && ((Optional<?>) m.invoke(e, s0, s1)).isPresent()) return "duplicate, answered with its old offset";
            }
            cInfo.getMethod("appendDataBatch", short.class, int.class, int.class, long.class, cMeta, long.class, boolean.class)
                .invoke(info, (short) epoch, s0, s1, ts, cMeta.getConstructor(long.class).newInstance(offset), offset + s1 - s0, txn);
        } catch (InvocationTargetException e) { return e.getCause().getClass().getSimpleName(); }
        cMgr.getMethod("update", cInfo).invoke(psm, info);
        offset += s1 - s0 + 1;
        return "appended";
    }
    static String marker(long pid, int epoch, int coordEpoch, int tv) throws Exception {
        Object info = cMgr.getMethod("prepareUpdate", long.class, cOrigin).invoke(psm, pid, coord);
        Object mk = cMarker.getConstructor(cType, int.class).newInstance(abort, coordEpoch);
        try {
            Optional<?> done = null;
            for (Method m : cInfo.getMethods()) if (m.getName().equals("appendEndTxnMarker"))
                done = (Optional<?>) (m.getParameterCount() == 5 ? m.invoke(info, mk, (short) epoch, offset, now, (short) tv) : m.invoke(info, mk, (short) epoch, offset, now));
            cMgr.getMethod("update", cInfo).invoke(psm, info);
            if (done.isPresent()) for (Method m : cMgr.getMethods()) if (m.getName().equals("completeTxn")) m.invoke(psm, done.get());
        } catch (InvocationTargetException e) { return e.getCause().getClass().getSimpleName(); }
        offset += 1;
        return "appended";
    }
    static String expire() throws Exception { cMgr.getMethod("removeExpiredProducers", long.class).invoke(psm, now); return "" + ((Map<?,?>) cMgr.getMethod("activeProducers").invoke(psm)).keySet(); }
    static void say(String what, String answer) { System.out.println("  " + what + ": " + answer); }
    public static void main(String[] a) throws Exception {
        cMgr = Class.forName(L + "ProducerStateManager"); cInfo = Class.forName(L + "ProducerAppendInfo"); cOrigin = Class.forName(L + "AppendOrigin"); cMeta = Class.forName(L + "LogOffsetMetadata");
        cMarker = first("org.apache.kafka.common.record.EndTransactionMarker", "org.apache.kafka.common.record.internal.EndTransactionMarker");
        cType = first("org.apache.kafka.common.record.ControlRecordType", "org.apache.kafka.common.record.internal.ControlRecordType");
        for (Object o : cType.getEnumConstants()) if (o.toString().equals("ABORT")) abort = o;
        for (Object o : cOrigin.getEnumConstants()) { if (o.toString().equals("CLIENT")) client = o; if (o.toString().equals("COORDINATOR")) coord = o; }
        fresh();
        say("unknown id, first sequence 7", data(1, 0, 7, 9, now, false));
        say("then 10..12", data(1, 0, 10, 12, now, false));
        say("then a gap 20..22", data(1, 0, 20, 22, now, false));
        say("again 10..12", data(1, 0, 10, 12, now, false));
        say("epoch 1 at sequence 5", data(1, 1, 5, 6, now, false));
        say("own marker, same epoch 0, no transaction, tv 0", marker(1, 0, 0, 0));
        say("data goes on 13..14 after it", data(1, 0, 13, 14, now, false));
        say("same marker once more, tv 0", marker(1, 0, 0, 0));
        say("same marker once more, tv 2", marker(1, 0, 0, 2));
        say("duplicate 13..14 still found after markers", data(1, 0, 13, 14, now, false));
        say("marker with epoch 1", marker(1, 1, 0, 0));
        say("late data of epoch 0, 15..15", data(1, 0, 15, 15, now, false));
        say("late marker of epoch 0", marker(1, 0, 0, 0));
        say("epoch 1 data from 3", data(1, 1, 3, 3, now, false));
        say("epoch 1 data from 0", data(1, 1, 0, 3, now, false));
        say("epoch 2 data from 0 without a marker", data(1, 2, 0, 3, now, false));
        say("marker with coordinator epoch 5", marker(1, 2, 5, 0));
        say("marker with coordinator epoch 4", marker(1, 2, 4, 0));
        fresh();
        say("transaction: record epoch 3", data(2, 3, 0, 0, now, true));
        say("non-transactional under it", data(2, 3, 1, 1, now, false));
        say("abort marker epoch 4, tv 2", marker(2, 4, 0, 2));
        say("the same marker again, tv 2", marker(2, 4, 0, 2));
        say("data 0..1 of epoch 4, not transactional", data(2, 4, 0, 1, now, false));
        say("the same marker late, after data, tv 2", marker(2, 4, 0, 2));
        say("the same marker late, after data, tv 1", marker(2, 4, 0, 1));
        say("seal: marker epoch 5", marker(2, 5, 0, 0));
        say("the first marker after the seal, tv 2", marker(2, 4, 0, 2));
        say("the first marker after the seal, tv 1", marker(2, 4, 0, 1));
        fresh();
        say("record of two days ago", data(3, 0, 0, 0, now - 2 * 86400000L, false));
        say("producers after the periodic check", expire());
        say("a late batch at sequence 40", data(3, 0, 40, 41, now, false));
        fresh();
        say("record of now", data(3, 0, 0, 0, now, false)); say("then one of two days ago", data(3, 0, 1, 1, now - 2 * 86400000L, false));
        say("producers after the periodic check", expire());
        fresh();
        say("record of two days ago", data(3, 0, 0, 0, now - 2 * 86400000L, false)); say("marker of now", marker(3, 0, 0, 0));
        say("producers after the periodic check", expire());
    }
}
